"""Asks Apache Hudi which schema a write gives a table, and what becomes of the rows.

    python make_cases.py --hudi 0.15.0 --jar hudi-spark3.5-bundle_2.12-0.15.0.jar --out . [--only deduce|writes]

Two files come out of it:

deduce_<version>.json   What HoodieSchemaUtils.deduceWriterSchema answers. "pairs" is the matrix of one column's type in the
                        table and in the rows, by the names of "types"; "shapes" are whole schemas with options. An answer is
                        a name of "types" or a schema, or "!" and the class of the exception.
writes_<version>.json   Real writes: a table made by a first frame, then a second frame upserted or inserted, and then the
                        schema in the commit and the rows of the table, or the error. Ids 1 and 2 lie in one partition,
                        9 in another that the second write leaves alone; the second write brings 2 again and a new 3.
                        "values" are the values of each type, in the first frame and in the second.
"""

import argparse
import json
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "..", "testdata", "spark"))

import make_fixtures as fixtures  # noqa: E402  (found by the line above)

from pyspark.sql.types import _parse_datatype_string  # noqa: E402

RECONCILE = "hoodie.datasource.write.reconcile.schema"
NULLS = "hoodie.write.set.null.for.missing.columns"
DROP = "hoodie.datasource.write.schema.allow.auto.evolution.column.drop"
VALIDATE = "hoodie.avro.schema.validate"
ON_READ = "hoodie.schema.on.read.enable"

RECORD = "hoodie.t.t_record"


def optional(kind):
    return kind if kind == "null" else ["null", kind]


def field(name, kind, required=False, **more):
    f = {"name": name, "type": kind if required else optional(kind)}
    if not required:
        f["default"] = None
    return {**f, **more}


def record(*fields, name="t_record", space="hoodie.t"):
    return {"type": "record", "name": name, "namespace": space, "fields": list(fields)}


def inner(*fields, name="v"):
    return record(*fields, name=name, space=RECORD)


def logical(kind, name, **more):
    return {"type": kind, "logicalType": name, **more}


def decimal(precision, scale):
    size = (len(bin(10 ** precision - 1)) - 2) // 8 + 1
    return {"type": "fixed", "name": "fixed", "namespace": RECORD + ".v", "size": size, "logicalType": "decimal",
            "precision": precision, "scale": scale}


TYPES = {
    "boolean": "boolean", "int": "int", "long": "long", "float": "float", "double": "double", "string": "string", "bytes": "bytes",
    "date": logical("int", "date"),
    "time-millis": logical("int", "time-millis"), "time-micros": logical("long", "time-micros"),
    "timestamp-millis": logical("long", "timestamp-millis"), "timestamp-micros": logical("long", "timestamp-micros"),
    "local-timestamp-millis": logical("long", "local-timestamp-millis"),
    "local-timestamp-micros": logical("long", "local-timestamp-micros"),
    "uuid": logical("string", "uuid"),
    "decimal(10,2)": decimal(10, 2), "decimal(11,2)": decimal(11, 2), "decimal(12,2)": decimal(12, 2),
    "decimal(12,4)": decimal(12, 4), "decimal(8,2)": decimal(8, 2), "decimal(11,4)": decimal(11, 4), "decimal(20,0)": decimal(20, 0),
    "bytes decimal(10,2)": logical("bytes", "decimal", precision=10, scale=2),
    "fixed 8": {"type": "fixed", "name": "f8", "namespace": RECORD, "size": 8},
    "fixed 4": {"type": "fixed", "name": "f4", "namespace": RECORD, "size": 4},
    "enum ab": {"type": "enum", "name": "e", "namespace": RECORD, "symbols": ["a", "b"]},
    "enum abc": {"type": "enum", "name": "e", "namespace": RECORD, "symbols": ["a", "b", "c"]},
    "array int": {"type": "array", "items": optional("int")}, "array long": {"type": "array", "items": optional("long")},
    "array required int": {"type": "array", "items": "int"},
    "map int": {"type": "map", "values": optional("int")}, "map long": {"type": "map", "values": optional("long")},
    "map required int": {"type": "map", "values": "int"},
    "record a int": inner(field("a", "int")), "record a long": inner(field("a", "long")),
    "record a int b string": inner(field("a", "int"), field("b", "string")),
    "record b string": inner(field("b", "string")),
    "null": "null",
}


def shapes():
    """(name, table or None, rows): whole schemas. Each is asked under every set of OPTIONS."""
    id_, a, b, c = field("id", "int"), field("a", "int"), field("b", "string"), field("c", "double")
    yield "first", None, record(id_, a)
    yield "first with required", None, record(field("id", "int", required=True), a)
    yield "first with defaults and docs", None, record(field("id", "int", required=True, default=7, doc="key"), field("b", "string", doc="b's"))
    yield "first null last", None, record({"name": "id", "type": ["int", "null"], "default": 1}, {"name": "b", "type": ["string", "null"]})
    yield "first with meta columns", None, record(field("_hoodie_commit_time", "string"), id_)
    yield "first of another name", None, record(id_, field("v", inner(field("x", "int"), name="x")), name="Order", space="shop")
    yield "same", record(id_, a), record(id_, a)
    yield "added last", record(id_, a), record(id_, a, b)
    yield "added first", record(id_, a), record(b, id_, a)
    yield "added in the middle", record(id_, a), record(id_, b, a)
    yield "added twice around", record(id_, a), record(b, id_, c, a, field("d", "int"))
    yield "added required", record(id_, a), record(id_, a, field("b", "string", required=True))
    yield "added required with default", record(id_, a), record(id_, a, field("b", "int", required=True, default=0))
    yield "added with default", record(id_, a), record(id_, a, {"name": "b", "type": ["int", "null"], "default": 5})
    yield "added deleted flag", record(id_, a), record(id_, a, field("_hoodie_is_deleted", "boolean"))
    yield "added required deleted flag", record(id_, a), record(id_, a, field("_hoodie_is_deleted", "boolean", required=True, default=False))
    yield "missing last", record(id_, a, b), record(id_, a)
    yield "missing middle", record(id_, a, b), record(id_, b)
    yield "missing required", record(id_, field("a", "int", required=True), b), record(id_, b)
    yield "missing and added", record(id_, a, b), record(id_, b, c)
    yield "missing and added last", record(id_, a, b), record(id_, a, c)
    yield "missing and widened", record(id_, a, b), record(id_, field("a", "long"))
    yield "missing and narrowed", record(id_, field("a", "long"), b), record(id_, a)
    yield "reordered", record(id_, a, b), record(b, a, id_)
    yield "reordered and added", record(id_, a, b), record(b, c, id_, field("d", "int"), a)
    yield "case differs", record(id_, a), record(id_, field("A", "int"))
    yield "case differs with exact", record(id_, a), record(id_, a, field("A", "int"))
    yield "required in the table", record(id_, field("a", "int", required=True)), record(id_, a)
    yield "required in the rows", record(id_, a), record(id_, field("a", "int", required=True))
    yield "required in both", record(id_, field("a", "int", required=True)), record(id_, field("a", "int", required=True))
    yield "required in both with default", record(id_, field("a", "int", required=True, default=3)), record(id_, field("a", "int", required=True))
    yield "required and widened", record(id_, field("a", "int", required=True)), record(id_, field("a", "long", required=True))
    yield "null last in the table", record({"name": "id", "type": ["int", "null"]}, {"name": "a", "type": ["int", "null"], "default": 1}), record(id_, a)
    yield "docs", record(id_, field("a", "int", doc="old")), record(id_, field("a", "int", doc="new"))
    yield "doc lost", record(id_, field("a", "int", doc="old")), record(id_, a)
    yield "meta in rows", record(id_, a), record(field("_hoodie_commit_time", "string"), field("_hoodie_record_key", "string"), id_, a)
    yield "meta in table", record(field("_hoodie_commit_time", "string"), id_, a), record(id_, a)
    yield "other record name", record(id_, a), record(id_, a, name="Order", space="shop")
    yield "other nested name", record(id_, field("v", inner(field("x", "int")))), record(id_, field("v", inner(field("x", "int"), name="w")))
    yield "empty rows", record(id_, a), record()
    yield "empty table", record(), record(id_, a)
    yield "nested same", record(id_, field("v", inner(a, b))), record(id_, field("v", inner(a, b)))
    yield "nested added", record(id_, field("v", inner(a))), record(id_, field("v", inner(a, b)))
    yield "nested added first", record(id_, field("v", inner(a))), record(id_, field("v", inner(b, a)))
    yield "nested added required", record(id_, field("v", inner(a))), record(id_, field("v", inner(a, field("b", "string", required=True))))
    yield "nested missing", record(id_, field("v", inner(a, b))), record(id_, field("v", inner(a)))
    yield "nested missing and added", record(id_, field("v", inner(a, b))), record(id_, field("v", inner(a, c)))
    yield "nested reordered", record(id_, field("v", inner(a, b))), record(id_, field("v", inner(b, a)))
    yield "nested widened", record(id_, field("v", inner(a, b))), record(id_, field("v", inner(field("a", "long"), b)))
    yield "nested narrowed", record(id_, field("v", inner(field("a", "long"), b))), record(id_, field("v", inner(a, b)))
    yield "nested required in the table", record(id_, field("v", inner(field("a", "int", required=True)))), record(id_, field("v", inner(a)))
    yield "nested required in the rows", record(id_, field("v", inner(a))), record(id_, field("v", inner(field("a", "int", required=True))))
    yield "record required in the table", record(id_, field("v", inner(a), required=True)), record(id_, field("v", inner(a)))
    yield "list record added", record(id_, field("v", {"type": "array", "items": optional(inner(a))})), \
        record(id_, field("v", {"type": "array", "items": optional(inner(a, b))}))
    yield "list record missing", record(id_, field("v", {"type": "array", "items": optional(inner(a, b))})), \
        record(id_, field("v", {"type": "array", "items": optional(inner(a))}))
    yield "list record reordered", record(id_, field("v", {"type": "array", "items": optional(inner(a, b))})), \
        record(id_, field("v", {"type": "array", "items": optional(inner(b, a))}))
    yield "list record widened", record(id_, field("v", {"type": "array", "items": optional(inner(a))})), \
        record(id_, field("v", {"type": "array", "items": optional(inner(field("a", "long")))}))
    yield "map record added", record(id_, field("v", {"type": "map", "values": optional(inner(a))})), \
        record(id_, field("v", {"type": "map", "values": optional(inner(a, b))}))
    yield "map record missing", record(id_, field("v", {"type": "map", "values": optional(inner(a, b))})), \
        record(id_, field("v", {"type": "map", "values": optional(inner(a))}))
    yield "deep added", record(id_, field("v", inner(field("w", record(a, name="w", space=RECORD + ".v"))))), \
        record(id_, field("v", inner(field("w", record(a, b, name="w", space=RECORD + ".v")), c)))
    yield "record added", record(id_, a), record(id_, field("v", inner(a, b)), a)
    yield "union of three", record(id_, {"name": "a", "type": ["null", "int", "string"], "default": None}), \
        record(id_, {"name": "a", "type": ["null", "int", "string"], "default": None})


OPTIONS = {
    "default": {},
    "reconcile": {RECONCILE: "true"},
    "nulls": {NULLS: "true"},
    "drop": {DROP: "true"},
    "validate": {VALIDATE: "true"},
    "validate, drop": {VALIDATE: "true", DROP: "true"},
    "reconcile, validate": {RECONCILE: "true", VALIDATE: "true"},
    "nulls, drop": {NULLS: "true", DROP: "true"},
    "nulls, reconcile": {NULLS: "true", RECONCILE: "true"},
}


class Deducer:
    def __init__(self, spark, since_1):
        self.jvm, self.since_1 = spark._jvm, since_1

    def parse(self, schema):
        text = json.dumps(schema)
        if self.since_1:
            return self.jvm.org.apache.hudi.common.schema.HoodieSchema.parse(text)
        return getattr(self.jvm.org.apache.avro, "Schema$Parser")().parse(text)

    def ask(self, table, rows, options):
        props = self.jvm.org.apache.hudi.common.config.TypedProperties()
        for key, value in options.items():
            props.setProperty(key, value)
        option = self.jvm.org.apache.hudi.common.util.Option
        try:
            answer = self.jvm.org.apache.hudi.HoodieSchemaUtils.deduceWriterSchema(
                self.parse(rows), option.of(self.parse(table)) if table else option.empty(), option.empty(), props)
            return json.loads(answer.toString())
        except Exception as e:  # the exception is the answer
            java = getattr(e, "java_exception", None)
            return "!" + (java.getClass().getSimpleName() if java is not None else f"{type(e).__name__} {e}")

    def pair(self, table, rows):
        got = self.ask(record(field("v", TYPES[table])), record(field("v", TYPES[rows])), {})
        if isinstance(got, str):
            return got
        kind = got["fields"][0]["type"]
        for name, known in TYPES.items():
            if kind == optional(known) or kind == known or kind == ["null", known]:
                return name
        return kind

    def all(self):
        pairs = {t: {r: self.pair(t, r) for r in TYPES} for t in TYPES}
        answers = []
        for name, table, rows in shapes():
            by_answer = {}
            for label, options in OPTIONS.items():
                got = self.ask(table, rows, options)
                by_answer.setdefault(json.dumps(got), []).append(label)
            answers.append({"name": name, "table": table, "rows": rows,
                            "answers": [{"options": labels, "answer": json.loads(got)} for got, labels in by_answer.items()]})
        return {"types": TYPES, "options": OPTIONS, "pairs": pairs, "shapes": answers}


# One value of each Spark type, twice: what the table has and what the rows bring. Values are chosen so that damage shows:
# more digits than a float has, a time before 1970, text that is no number.
VALUES = {
    "boolean": ("true", "false"), "tinyint": ("1", "-2"), "smallint": ("300", "-301"),
    "int": ("16777217", "-7"), "bigint": ("9007199254740993", "-8"),
    "float": ("1.1", "-0.5"), "double": ("0.1", "-2.25"), "string": ("'12'", "'x'"), "binary": ("X'00FF'", "X'41'"),
    "date": ("date'1969-12-31'", "date'2024-02-29'"),
    "timestamp": ("timestamp'1969-12-31 23:59:59.123456'", "timestamp'2024-02-29 12:34:56.000123'"),
    "timestamp_ntz": ("timestamp_ntz'1969-12-31 23:59:59.123456'", "timestamp_ntz'2024-02-29 12:34:56.000123'"),
    "decimal(10,2)": ("12345678.25", "-0.75"), "decimal(12,2)": ("1234567890.25", "-0.75"), "decimal(12,4)": ("12345678.2525", "-0.0075"),
    "decimal(11,2)": ("123456789.25", "-0.75"), "decimal(8,2)": ("123456.25", "-0.75"), "decimal(20,0)": ("12345678901234567890", "-1"),
    "array<int>": ("array(1, null)", "array(-2)"), "array<bigint>": ("array(1, null)", "array(-2)"),
    "map<string,int>": ("map('k', 1)", "map('l', -2)"), "map<string,bigint>": ("map('k', 1)", "map('l', -2)"),
    "struct<a:int>": ("named_struct('a', 1)", "named_struct('a', -2)"),
    "struct<a:bigint>": ("named_struct('a', 1)", "named_struct('a', -2)"),
    "struct<a:int,b:string>": ("named_struct('a', 1, 'b', 'x')", "named_struct('a', -2, 'b', 'y')"),
    "struct<b:string,a:int>": ("named_struct('b', 'x', 'a', 1)", "named_struct('b', 'y', 'a', -2)"),
    "struct<b:string>": ("named_struct('b', 'x')", "named_struct('b', 'y')"),
    "array<struct<a:int>>": ("array(named_struct('a', 1), null)", "array(named_struct('a', 2))"),
    "array<struct<a:int,b:int>>": ("array(named_struct('a', 1, 'b', 2), null)", "array(named_struct('a', 2, 'b', 5))"),
    "map<string,struct<a:int>>": ("map('k', named_struct('a', 1))", "map('k', named_struct('a', 2))"),
    "map<string,struct<a:int,b:int>>": ("map('k', named_struct('a', 1, 'b', 2))", "map('k', named_struct('a', 2, 'b', 5))"),
    "void": ("null", "null"),
}

HEAD = "id int, p string, ts bigint"


def type_pairs():
    """The Spark types whose change is tried with a real write: everything that one release or another lets through, and some
    that all refuse."""
    for t, rows in {
        "boolean": "int string", "int": "boolean bigint float double string binary date timestamp timestamp_ntz decimal(20,0)",
        "bigint": "int float double string timestamp timestamp_ntz date decimal(20,0)", "float": "int bigint double string",
        "double": "int bigint float string decimal(10,2)", "string": "boolean int bigint float double binary date timestamp decimal(10,2)",
        "binary": "string int", "date": "int bigint double string timestamp", "timestamp": "bigint double string timestamp_ntz date timestamp",
        "timestamp_ntz": "bigint int string timestamp date timestamp_ntz", "decimal(10,2)": "int bigint float double string decimal(20,0)",
        "decimal(20,0)": "bigint decimal(10,2)",
    }.items():
        yield from ((t, r) for r in rows.split())
    yield from [("tinyint", "smallint"), ("smallint", "tinyint"), ("int", "smallint"),
                ("decimal(10,2)", "decimal(12,2)"), ("decimal(12,2)", "decimal(10,2)"), ("decimal(10,2)", "decimal(12,4)"),
                ("decimal(12,4)", "decimal(10,2)"), ("decimal(10,2)", "decimal(11,2)"), ("decimal(11,2)", "decimal(10,2)"),
                ("decimal(8,2)", "decimal(12,4)"), ("decimal(12,4)", "decimal(8,2)"), ("decimal(10,2)", "decimal(8,2)"),
                ("array<int>", "array<bigint>"), ("array<bigint>", "array<int>"), ("map<string,int>", "map<string,bigint>"),
                ("map<string,bigint>", "map<string,int>"), ("struct<a:int>", "struct<a:bigint>"), ("struct<a:bigint>", "struct<a:int>"),
                ("struct<a:int>", "struct<a:int,b:string>"), ("struct<a:int,b:string>", "struct<a:int>"),
                ("struct<a:int,b:string>", "struct<b:string,a:int>"), ("struct<a:int,b:string>", "struct<b:string>"),
                ("array<struct<a:int>>", "array<struct<a:int,b:int>>"), ("array<struct<a:int,b:int>>", "array<struct<a:int>>"),
                ("map<string,struct<a:int>>", "map<string,struct<a:int,b:int>>"), ("int", "array<int>"), ("struct<a:int>", "string"),
                ("void", "int"), ("int", "void"), ("void", "void")]


def column_cases():
    """(name, columns of the table, columns of the rows) around the ones of HEAD."""
    yield "same", "a int", "a int"
    yield "added", "a int", "a int, b string"
    yield "added between", "a int, c double", "a int, b string, c double"
    yield "added required", "a int", "a int, b string not null"
    yield "missing", "a int, b string", "a int"
    yield "missing between", "a int, b string, c double", "a int, c double"
    yield "missing required", "a int, b string not null", "a int"
    yield "missing and added", "a int, b string, c double", "a int, c double, d int"
    yield "missing and widened", "a int, b string", "a bigint"
    yield "missing and narrowed", "a bigint, b string", "a int"
    yield "reordered", "a int, b string, c string", "c string, a int, b string"
    yield "reordered and added", "a int, b string, c string", "c string, d int, b string, a int"
    yield "required in the table", "a int not null", "a int"
    yield "required in the rows", "a int", "a int not null"
    yield "required in both", "a int not null", "a int not null"
    yield "case differs", "a int", "A int"
    yield "case twice", "a int", "a int, A int"
    yield "deleted flag", "a int", "a int, _hoodie_is_deleted boolean"
    yield "meta in the rows", "a int", "_hoodie_commit_time string, a int"
    yield "nested added", "v struct<a:int>", "v struct<a:int,b:string>"
    yield "nested missing", "v struct<a:int,b:string>", "v struct<a:int>"
    yield "nested reordered", "v struct<a:int,b:string>", "v struct<b:string,a:int>"
    yield "nested missing and added", "v struct<a:int>", "v struct<b:string>"


class Writer:
    def __init__(self, spark, work):
        self.spark, self.work, self.count = spark, work, 0
        # Lists of two levels, the default of 0.15.0, have no room for null elements.
        spark.sparkContext._jsc.hadoopConfiguration().set("parquet.avro.write-old-list-structure", "false")

    def frame(self, columns, ids, which):
        kinds = _parse_datatype_string(columns)
        selects = []
        for id_, part in ids:
            values = []
            for f in kinds.fields:
                kind = f.dataType.simpleString()
                value = {"id": str(id_), "p": f"'{part}'", "ts": str(which), "_hoodie_is_deleted": "null",
                         "_hoodie_commit_time": "'0'"}.get(f.name) or VALUES[kind][which]
                values.append(f"cast({value} as {kind}) as `{f.name}`")
            selects.append("select " + ", ".join(values))
        frame = self.spark.sql(" union all ".join(selects))
        jvm, session = self.spark._jvm, self.spark._jsparkSession
        kind = jvm.org.apache.spark.sql.types.DataType.fromJson(kinds.json())
        return session.createDataFrame(frame._jdf.javaRDD(), kind).coalesce(1)

    def write(self, frame, path, options, table_type, operation, mode):
        writer = frame.write().format("hudi")
        for key, value in {**fixtures.COMMON, "hoodie.table.name": "t", "hoodie.metadata.enable": "false",
                           "hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.partitionpath.field": "p",
                           "hoodie.datasource.write.precombine.field": "ts", "hoodie.datasource.write.table.type": table_type,
                           "hoodie.datasource.write.operation": operation, **options}.items():
            writer = writer.option(key, value)
        writer.mode(mode).save(path)

    def schema(self, path):
        folder = os.path.join(path, ".hoodie")
        if os.path.isdir(os.path.join(folder, "timeline")):
            meta = self.spark._jvm.org.apache.hudi.common.table.HoodieTableMetaClient.builder() \
                .setConf(self.spark._jvm.org.apache.hudi.storage.hadoop.HadoopStorageConfiguration(
                    self.spark._jsc.hadoopConfiguration())).setBasePath(path).build()
            resolver = self.spark._jvm.org.apache.hudi.common.table.TableSchemaResolver(meta)
            return json.loads(resolver.getTableSchema(False).toString())
        last = max(f for f in os.listdir(folder) if f.endswith("commit"))
        with open(os.path.join(folder, last), encoding="utf-8") as f:
            return json.loads(json.load(f)["extraMetadata"]["schema"])

    def rows(self, path):
        self.spark.catalog.clearCache()
        got = fixtures.rows_to_json(self.spark.read.format("hudi").load(path))
        rows = [{k: v for k, v in r.items() if not k.startswith("_hoodie_") or k == "_hoodie_is_deleted"} for r in got["rows"]]
        return sorted(rows, key=lambda r: r["id"])

    def case(self, table, rows, options, table_type="COPY_ON_WRITE", operation="upsert"):
        self.count += 1
        path = os.path.join(self.work, f"t{self.count}")
        shutil.rmtree(path, ignore_errors=True)
        got = {}
        try:
            self.write(self.frame(f"{HEAD}, {table}", [(1, "a"), (2, "a"), (9, "b")], 0), path, options, table_type,
                       "upsert", "overwrite")
            got["before"] = self.schema(path)
            self.write(self.frame(f"{HEAD}, {rows}", [(2, "a"), (3, "a")], 1), path, options, table_type, operation, "append")
            got["after"] = self.schema(path)
        except Exception as e:  # the error is the answer
            got["error"] = fixtures.error_text(e)[:400].replace(self.work, "")
        try:
            if "before" in got:
                got["read"] = self.rows(path)
        except Exception as e:
            got["unreadable"] = fixtures.error_text(e)[:400].replace(self.work, "")
        if not os.environ.get("KEEP"):
            shutil.rmtree(path, ignore_errors=True)
        return got

    def values(self):
        """The values of VALUES as rows_to_json writes them."""
        def value(kind, text):
            return fixtures.rows_to_json(self.spark.sql(f"select cast({text} as {kind}) as v"))["rows"][0]["v"]
        return {kind: [value(kind, old), value(kind, new)] for kind, (old, new) in VALUES.items()}

    def all(self, log):
        cases = []

        def add(name, table, rows, label, **how):
            got = self.case(table, rows, OPTIONS[label], **how)
            cases.append({"name": name, "options": label, **how, "table": table, "rows": rows, **got})
            log(f"{len(cases)} {name} {label} {how}: {got.get('error') or got.get('unreadable') or 'ok'}")

        for t, r in type_pairs():
            add(f"{t} to {r}", f"v {t}", f"v {r}", "default")
        for t, r in type_pairs():
            if cases_accept(cases, f"{t} to {r}"):
                add(f"{t} to {r}", f"v {t}", f"v {r}", "default", table_type="MERGE_ON_READ")
        for name, table, rows in column_cases():
            for label in ("default", "reconcile", "nulls", "drop"):
                add(name, table, rows, label)
            for how in ({"operation": "insert"}, {"table_type": "MERGE_ON_READ"}):
                for label in ("default", "reconcile", "nulls"):
                    add(name, table, rows, label, **how)
        kinds = [k for k in VALUES if k not in ("void", "timestamp_ntz")]  # 0.15.0 knows neither
        every = ", ".join(f"v{i} {kind}" for i, kind in enumerate(kinds))
        add("every type", every, every, "default")
        return {"values": self.values(), "cases": cases}


def cases_accept(cases, name):
    return any(c["name"] == name and "after" in c and c["table"] != c["rows"] for c in cases)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hudi", required=True)
    parser.add_argument("--jar", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--work", default="/tmp/reconcile-cases")
    parser.add_argument("--only")
    args = parser.parse_args()
    work = f"{args.work}-{args.hudi}"
    spark = fixtures.start_spark(args.jar, work)

    def log(text):
        print(text, file=sys.stderr, flush=True)

    for kind, make in (("deduce", lambda: Deducer(spark, args.hudi >= "1").all()), ("writes", lambda: Writer(spark, work).all(log))):
        if args.only in (None, kind):
            text = fixtures.layout(make())
            with open(os.path.join(args.out, f"{kind}_{args.hudi}.json"), "w", encoding="utf-8") as f:
                f.write(text + "\n")
    spark.stop()


if __name__ == "__main__":
    main()
