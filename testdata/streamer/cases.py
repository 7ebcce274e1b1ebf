"""The cases of this folder that record.py made."""
import json

HUDI = "org.apache.hudi."
TRANSFORM = HUDI + "utilities.transform."


def source(name):
    return ["--source-class", HUDI + "utilities.sources." + name] + confs("hoodie.streamer.source.dfs.root=${CASE}/input")


def lines(*rows):
    return "".join((r if isinstance(r, str) else json.dumps(r, ensure_ascii=False)) + "\n" for r in rows)


def avsc(*fields):
    """A record: (name, type) for a required column, (name, type, default) for one with a default."""
    return json.dumps({"type": "record", "name": "rec", "fields": [{"name": f[0], "type": f[1], **({"default": f[2]} if len(f) > 2 else {})} for f in fields]})


def opt(name, kind):
    return (name, ["null", kind], None)


def table(**columns):
    return pa.table({k: pa.array(*v) for k, v in columns.items()})


KEYS = confs("hoodie.datasource.write.recordkey.field=id", "hoodie.datasource.write.partitionpath.field=region")
SCHEMA = ["--schemaprovider-class", HUDI + "utilities.schema.FilebasedSchemaProvider"] + confs("hoodie.streamer.schemaprovider.source.schema.file=${CASE}/conf/source.avsc")
ORDER = ["--source-ordering-field", "ts"]
JSON = source("JsonDFSSource") + KEYS + SCHEMA + ORDER
EVENTS = avsc(("id", "string"), ("region", "string"), opt("qty", "int"), ("ts", "long"))
SQL = ["--transformer-class", TRANSFORM + "SqlQueryBasedTransformer"] + confs("hoodie.streamer.transformer.sql=SELECT * FROM <SRC>")


def events(*rows):
    return lines(*[dict(zip(("id", "region", "qty", "ts"), r)) for r in rows])


case("filter_dupes", "--filter-dupes with inserts and bulk inserts", [
    step("create", {"conf/source.avsc": EVENTS, "0.json": events(("a", "x", 1, 1), ("b", "x", 1, 1))}, ["--op", "INSERT"]),
    step("insert", {"1.json": events(("a", "x", 9, 9), ("c", "x", 1, 1), ("c", "x", 2, 2), ("b", "y", 5, 5))}, ["--op", "INSERT", "--filter-dupes"]),
    step("bulk insert", {"2.json": events(("a", "x", 9, 9), ("d", "x", 1, 1), ("d", "x", 2, 2), ("b", "y", 9, 9))}, ["--op", "BULK_INSERT", "--filter-dupes"]),
], JSON)

case("delete_partition_named", "DELETE_PARTITION takes the partitions of the rows, whatever the properties name", [
    step("create", {"conf/source.avsc": EVENTS, "0.json": events(("a", "x", 1, 1), ("b", "y", 2, 1), ("c", "z", 3, 1))}),
    step("delete", {"1.json": events(("q", "y", 9, 9))}, ["--op", "DELETE_PARTITION"] + confs("hoodie.datasource.write.partitions.to.delete=z")),
], JSON)

case("root_file", "the root is a file", [
    step("rows", {"conf/source.avsc": EVENTS, "0.json": events(("a", "x", 1, 1)), "1.json": events(("b", "x", 1, 1))}, confs("hoodie.streamer.source.dfs.root=${CASE}/input/1.json")),
    step("nothing new", {"2.json": events(("c", "x", 1, 1))}, confs("hoodie.streamer.source.dfs.root=${CASE}/input/1.json")),
], JSON)

PARQUET = source("ParquetDFSSource") + KEYS
text, int32, int64 = pa.string(), pa.int32(), pa.int64()
case("default_ordering", "no ordering field given: ts orders", [
    step("two rows of one key", {"0.parquet": table(id=(["a", "a", "b"], text), region=(["x"] * 3, text), qty=([1, 2, 3], int32), ts=([5, 4, 1], int64))}),
], PARQUET)
case("default_ordering_absent", "no ordering field given, and no ts in the rows", [
    step("upsert", {"0.parquet": table(id=(["a"], text), region=(["x"], text), qty=([1], int32))}),
    step("insert", {"1.parquet": table(id=(["a"], text), region=(["x"], text), qty=([1], int32))}, ["--op", "INSERT"]),
], PARQUET)

case("decimal_widening", "a decimal gets more digits", [
    step("create", {"0.parquet": table(id=(["a", "b"], text), region=(["x", "y"], text), q=([decimal.Decimal("1.50")] * 2, pa.decimal128(5, 2)), ts=([1, 1], int64))}),
    step("wider", {"1.parquet": table(id=(["c"], text), region=(["x"], text), q=([decimal.Decimal("12345.50")], pa.decimal128(10, 2)), ts=([1], int64))}),
], PARQUET + ORDER)

case("json_defaults", "a field that is missing is null, whatever its default", [
    step("nullable", {"conf/source.avsc": avsc(("id", "string"), ("region", "string"), ("qty", ["int", "null"], 5), ("ts", "long")), "0.json": lines({"id": "a", "region": "x", "ts": 1})}),
], JSON)
case("json_defaults_required", "the same of a required one", [
    step("required", {"conf/source.avsc": avsc(("id", "string"), ("region", "string"), ("qty", "int", 5), ("ts", "long")), "0.json": lines({"id": "a", "region": "x", "ts": 1})}),
], JSON)

ALL = avsc(("id", "string"), ("region", "string"), ("ts", "long"), opt("i", "int"), opt("l", "long"), opt("f", "float"), opt("d", "double"), opt("b", "boolean"), opt("s", "string"), opt("by", "bytes"),
           opt("dec", {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}), opt("at", {"type": "long", "logicalType": "timestamp-micros"}), opt("day", {"type": "int", "logicalType": "date"}),
           opt("arr", {"type": "array", "items": ["null", "int"]}), opt("map", {"type": "map", "values": ["null", "int"]}),
           opt("rec", {"type": "record", "name": "in", "fields": [{"name": "x", "type": ["null", "int"], "default": None}, {"name": "y", "type": ["null", "string"], "default": None}]}), ("dn", ["int", "null"], 5))


def row(key, **values):
    return dict({"id": key, "region": "x", "ts": 1}, **values)


case("json_engine", "JSON under a transformer is read by the engine", [
    step("texts for numbers, numbers for texts", {"conf/source.avsc": ALL, "0.json": lines(row("a", i="12", l="13", d="1.5", b="true", s=7), row("b", i=1.9, l=2.0, d=3, b=1, s=1.50), row("c", i=3000000000, l=1e30, f=1e39, s=True), "",
         row("d", f="NaN", d="Infinity"), row("e", f="1.5", d="-Infinity", s=1e30))}),
    step("objects and lists", {"1.json": lines(row("f", s={"k": [1, "é\n\"q", None], "c": 1.10}), row("g", arr=[1, "x", 3]), row("h", map={"a": 1, "b": "x"}), row("i", rec={"x": "q", "y": "z"}), row("j", arr=5, map=[], rec="t"),
         row("k", arr=[1, 2], map={"a": 2}, rec={"y": 1}))}),
    step("moments", {"2.json": lines(row("l", at="2020-01-02 03:04:05.123456", day="2020-01-02"), row("m", at=1579550000, day=18000), row("n", at=1.5, day="x"), row("o", at=" 2020-01-02 ", day="2020"), row("p", at=""))}),
    step("decimals and bytes", {"3.json": lines(row("q", dec=12.345, by="YWJj"), row("r", dec="12.5", by="é!"), row("s", dec=1234, by=5), row("t", dec=-0.005, by=""), row("u", dec="x"), row("v", dec=1e2))}),
    step("a number that is none, a field that has a default", {"4.json": '{"id":"w","region":"x","ts":1,"d":NaN,"f":-Infinity}\n'}),
    step("a day that only the older parser reads", {"5.json": lines(row("x", day="2020-02-30"))}),
    step("not JSON", {"6.json": lines(row("y"), "{bad")}),
], JSON + SQL)

INFERRED = source("CsvDFSSource") + ["--source-ordering-field", "id"] + confs(
    "hoodie.datasource.write.recordkey.field=id", "hoodie.datasource.write.keygenerator.class=org.apache.hudi.keygen.NonpartitionedKeyGenerator", "hoodie.streamer.csv.header=true")
CSV = INFERRED + SCHEMA
TEXTS = avsc(opt("id", "string"), opt("s", "string"), opt("t", "string"))
case("csv_quotes", "quotes in and at the end of values, and left open", [
    step("rows", {"conf/source.avsc": TEXTS, "0.csv": "id,s,t\n" + "".join(x + "\n" for x in (
        'a,"x""y",1', 'b,"x"y,2', 'c,x"y",3', 'd,"x\\"y",4', 'e,"x\\\\",5', 'f, "x" ,6', 'g,"x" ,7', 'k,"a,""b"",c",11', 'l,"""",12', 'm,"x"""  ,13', 'n,"open,14', 'o,"x', 'y",15'))}),
], CSV)
case("csv_headers", "headers with fewer and more columns than the schema, in its order", [
    step("fewer", {"conf/source.avsc": TEXTS, "0.csv": "id,s\na,1\n"}),
    step("more", {"1.csv": "ID,S,T,u\nb,1,2,3\n"}),
    step("other names", {"2.csv": "one,two,three\nc,1,2\n"}),
    step("another order, refused", {"3.csv": "s,id,t\n1,d,2\n"}, confs("hoodie.streamer.csv.enforceSchema=false")),
], CSV)
case("csv_lines_crlf", "line ends in values of a file of Windows", [
    step("rows", {"conf/source.avsc": TEXTS, "0.csv": 'id,s,t\r\na,"x\r\ny",1\r\nb,"p\nq",2\r\n\r\nc,"",3\r\n'}, confs("hoodie.streamer.csv.multiLine=true")),
], CSV)
case("csv_decimals", "decimals with commas between thousands", [
    step("rows", {"conf/source.avsc": avsc(opt("id", "string"), opt("s", {"type": "fixed", "name": "money", "size": 5, "logicalType": "decimal", "precision": 10, "scale": 2})), "0.csv": 'id,s\na,"1,234.5"\nb,1e2\nc,-0.005\nd,12345678901\ne,x\n'}),
], CSV)
case("csv_decimals_inferred", "the same, inferred", [
    step("rows", {"0.csv": 'id,s,t\na,"1,234",1\nb,"12,345","1,5"\n'}),
], INFERRED)
DAYS = avsc(opt("id", "string"), opt("day", {"type": "int", "logicalType": "date"}), opt("at", {"type": "long", "logicalType": "timestamp-micros"}))
case("csv_days", "days and moments, and those that only Spark's older parser reads", [
    step("rows", {"conf/source.avsc": DAYS, "0.csv": "id,day,at\na,2020-1-2,2020-1-2 3:4:5\nb,x,2020-01-02\nc,2020,2020-01-02T03:04:05.5Z\nd,02/01/2020,yesterday\ne,2020-01-02 ,2020-01-02 03:04:05+02:00\n"}),
    step("February 30", {"1.csv": "id,day,at\nf,2020-02-30,\n"}),
    step("25 o'clock", {"2.csv": "id,day,at\nf,,2020-01-02 25:00:00\n"}),
    step("patterns", {"3.csv": "id,day,at\ng,02/01/2020,02/01/2020 03:04\nh,2020-01-02,2020-01-02 03:04:05\n"}, confs("hoodie.streamer.csv.dateFormat=dd/MM/yyyy", "hoodie.streamer.csv.timestampFormat=dd/MM/yyyy HH:mm")),
    step("a day of one digit", {"4.csv": "id,day,at\ni,2/1/2020,\n"}, confs("hoodie.streamer.csv.dateFormat=dd/MM/yyyy", "hoodie.streamer.csv.timestampFormat=dd/MM/yyyy HH:mm")),
], CSV)
case("csv_unknown_option", "options that the original does not hand on", [
    step("rows", {"conf/source.avsc": TEXTS, "0.csv": "id,s,t\na,x,y\n"}, confs("hoodie.streamer.csv.nope=1", "hoodie.streamer.csv.locale=de-DE")),
], CSV)
