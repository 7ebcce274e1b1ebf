"""Makes the golden files of this folder: ORC files of the Apache writers, and beside each its rows as JSON Lines.

    python make_golden.py            files of PyArrow and PyOrc (both are Apache ORC for C++)
    python make_golden.py spark      files of Spark (Apache ORC for Java); needs pyspark and Java
    python make_golden.py hudi TABLE ANSWER
                                     base files of a table that Apache Hudi wrote, in a folder, and the rows that Spark reads there
    python make_golden.py examples   rows of the example files of the Apache ORC project that PyArrow's wheel carries

The rows are the values that were given to the writer, except for the examples, whose rows are those that PyArrow reads, and
the files of Apache Hudi 1.2.0, whose rows are those that Spark reads.

The form of values: integers, floats and booleans as in JSON ("NaN", "inf", "-inf" as strings); text as it is; binary in
hexadecimal; dates in days since 1970; timestamps in nanoseconds since 1970 on the writer's clock; decimals as the unscaled
integer in a string; lists as lists; maps as lists of pairs; structs as lists of their members; of unions, all members.
"""
import datetime, decimal, glob, gzip, json, math, os, random, shutil, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
R = random.Random(2015)
EPOCH = datetime.date(1970, 1, 1)


def save(name, make, rows, every=1):
    """Writes NAME.orc with make(path), and its rows; where every is not 1, only each every-th row, after a line that says so."""
    make(os.path.join(HERE, name + ".orc"))
    with open(os.path.join(HERE, name + ".json.gz"), "wb") as raw:
        with gzip.GzipFile(fileobj=raw, mode="wb", mtime=0, filename="") as f:
            if every > 1:
                f.write(json.dumps({"every": every, "rows": len(rows)}).encode() + b"\n")
            for row in rows[::every]:
                f.write(json.dumps(row, separators=(",", ":"), ensure_ascii=False).encode() + b"\n")


def plain(value, t):
    """The JSON form of a value of an Arrow type."""
    import pyarrow as pa
    ty = pa.types
    if value is None:
        return None
    if ty.is_floating(t):
        return value if math.isfinite(value) else "NaN" if math.isnan(value) else str(value)
    if ty.is_binary(t) or ty.is_fixed_size_binary(t):
        return value.hex()
    if ty.is_date(t):
        return (value - EPOCH).days
    if ty.is_timestamp(t):
        return value * {"ns": 1, "us": 1000}[t.unit]
    if ty.is_decimal(t):
        return str(int(value.scaleb(t.scale, decimal.Context(prec=80))))
    if ty.is_list(t):
        return [plain(v, t.value_type) for v in value]
    if ty.is_map(t):
        return [[plain(k, t.key_type), plain(v, t.item_type)] for k, v in value]
    if ty.is_struct(t):
        return [plain(value[f.name], f.type) for f in t]
    return value


def countable(array):
    """Values of an Arrow array with timestamps as counts."""
    import pyarrow as pa
    t = array.type
    if pa.types.is_timestamp(t):
        return array.cast(pa.int64()).to_pylist()
    if pa.types.is_struct(t):
        members = [countable(array.field(i)) for i in range(t.num_fields)]
        names = [f.name for f in t]
        return [dict(zip(names, row)) if ok else None for ok, row in zip(array.is_valid().to_pylist(), zip(*members))]
    return array.to_pylist()


def rows_of(table):
    columns = []
    for name in table.column_names:
        a = table.column(name).combine_chunks()
        columns.append([plain(v, a.type) for v in countable(a)])
    return [list(r) for r in zip(*columns)]


# ── PyArrow ──────────────────────────────────────────────────────────────────────────────────────────────────────────

def integers(kind, n, bits):
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    clip = lambda v: max(low, min(high, v))
    if kind == "random":
        return [R.randint(low, high) for _ in range(n)]
    if kind == "steps":
        return [clip(3 * i - 700) for i in range(n)]
    if kind == "rising":
        v, out = 0, []
        for _ in range(n):
            v += R.randint(0, 5)
            out.append(clip(v))
        return out
    if kind == "falling":
        return [clip(-v) for v in integers("rising", n, bits)]
    if kind == "runs":
        out = []
        while len(out) < n:
            out += [R.randint(low, high)] * R.randint(1, 30)
        return out[:n]
    if kind == "outliers":  # what patched base is for
        return [clip(R.randint(0, 100) + (R.getrandbits(bits - 2) if R.random() < 0.05 else 0)) for _ in range(n)]
    raise ValueError(kind)


def holes(values, share):
    return [None if R.random() < share else v for v in values]


def arrow_table(n):
    import pyarrow as pa
    cols = {}
    for kind in ("random", "steps", "rising", "falling", "runs", "outliers"):
        cols["l_" + kind] = pa.array(integers(kind, n, 64), pa.int64())
    for t, bits in ((pa.int8(), 8), (pa.int16(), 16), (pa.int32(), 32)):
        cols["i%d" % bits] = pa.array(holes(integers(R.choice(["random", "runs"]), n, bits), 0.1), t)
    cols["i32_outliers"] = pa.array(holes(integers("outliers", n, 32), 0.3), pa.int32())
    cols["nulls"] = pa.array([None] * n, pa.int32())
    cols["bool"] = pa.array(holes([R.random() < 0.5 for _ in range(n)], 0.2), pa.bool_())
    cols["float"] = pa.array([R.choice([0.5, -0.0, math.inf, -math.inf, math.nan, 1.25e-30]) for _ in range(n)], pa.float32())
    cols["double"] = pa.array(holes([R.random() * 10 ** R.randint(-300, 300) for _ in range(n)], 0.05), pa.float64())
    cols["text"] = pa.array(holes([R.choice(["", "a", "zürich", "東京", "x" * 40]) for _ in range(n)], 0.1), pa.string())
    cols["unique"] = pa.array(["%x" % R.getrandbits(60) for _ in range(n)], pa.string())
    cols["binary"] = pa.array(holes([R.randbytes(R.randint(0, 12)) for _ in range(n)], 0.1), pa.binary())
    cols["date"] = pa.array([datetime.date.fromordinal(R.randint(1, 3652059)) for _ in range(n)], pa.date32())
    for name, t in (("ts", pa.timestamp("ns")), ("instant", pa.timestamp("ns", "UTC"))):
        values = [R.randint(-9 * 10 ** 9, 9 * 10 ** 9) * 10 ** 9 + R.choice([0, 1, 999, 1000, 100000, 123456789, 999999999, 500000000]) for _ in range(n)]
        cols[name] = pa.array(holes([v for v in values], 0.1), t)
    for p, s in ((5, 2), (18, 18), (38, 0), (38, 20)):
        m = 10 ** p - 1
        values = [decimal.Decimal(R.choice([0, 1, -1, m, -m, R.randint(-m, m)])).scaleb(-s, decimal.Context(prec=60)) for _ in range(n)]
        cols["dec_%d_%d" % (p, s)] = pa.array(holes(values, 0.1), pa.decimal128(p, s))
    cols["list"] = pa.array(holes([holes(integers("random", R.randint(0, 4), 32), 0.2) for _ in range(n)], 0.1), pa.list_(pa.int32()))
    cols["map"] = pa.array(holes([[("k%d" % j, R.choice([None, "v", ""])) for j in range(R.randint(0, 3))] for _ in range(n)], 0.1),
                           pa.map_(pa.string(), pa.string()))
    inner = pa.struct([("a", pa.int64()), ("b", pa.list_(pa.struct([("c", pa.string()), ("d", pa.bool_())])))])
    make = lambda: {"a": R.choice([None, R.getrandbits(40)]),
                    "b": R.choice([None, [], [{"c": R.choice([None, "c"]), "d": True}, None, {"c": "dd", "d": None}]])}
    cols["struct"] = pa.array(holes([make() for _ in range(n)], 0.2), inner)
    return pa.table(cols)


def pyarrow_files():
    import pyarrow as pa
    import pyarrow.orc
    def one(name, table, **options):
        save(name, lambda path: pa.orc.write_table(table, path, **options), rows_of(table))
    one("pyarrow_none", arrow_table(300), compression="uncompressed", row_index_stride=100)
    one("pyarrow_v011", arrow_table(300), compression="zlib", file_version="0.11", row_index_stride=100, dictionary_key_size_threshold=0)
    one("pyarrow_v011_dictionary", arrow_table(150), compression="snappy", file_version="0.11", dictionary_key_size_threshold=1)
    one("pyarrow_zlib_dictionary", arrow_table(300), compression="zlib", dictionary_key_size_threshold=1, row_index_stride=100)
    one("pyarrow_snappy", arrow_table(150), compression="snappy", dictionary_key_size_threshold=0.5)
    one("pyarrow_lz4", arrow_table(100), compression="lz4", bloom_filter_columns=[1, 16, 17])
    one("pyarrow_zstd", arrow_table(150), compression="zstd", compression_strategy="compression")
    one("pyarrow_empty", arrow_table(0), compression="zstd")
    # Without the struct column: PyArrow 26 at times writes other values than it was given into structs in lists in structs.
    one("pyarrow_one_row", arrow_table(1).drop_columns(["struct"]), compression="zlib")
    # Many stripes.
    one("pyarrow_stripes", pa.table({"id": list(range(3000)), "name": ["n%04d" % (i * 7919 % 3000) for i in range(3000)]}),
        compression="uncompressed", stripe_size=1024, batch_size=100, row_index_stride=100)


# ── PyOrc ────────────────────────────────────────────────────────────────────────────────────────────────────────────

def pyorc_files():
    import pyorc, zoneinfo

    def write(path, schema, rows, **options):
        with open(path, "wb") as f, pyorc.Writer(f, schema, **options) as w:
            w.set_user_metadata(**{"sluice.key": "value".encode(), "empty": b""})
            for r in rows:
                w.write(r)

    texts = ["a", "ab  ", "", "zürich", None, "longer than ten"]
    cut = lambda s, n: None if s is None else s[:n]
    pad = lambda s, n: None if s is None else s[:n].ljust(n)
    rows = [(pad(texts[i % 6], 10), cut(texts[i % 6], 7), texts[(i * 5) % 6]) for i in range(60)]
    for share in (0.0, 1.0):
        save("pyorc_char_%s" % ("dictionary" if share else "direct"),
             lambda path: write(path, "struct<c:char(10),v:varchar(7),s:string>", rows, dict_key_size_threshold=share), [list(r) for r in rows])

    def union(i):
        if i % 5 == 0:
            return None
        return [i * 10, "text %d" % i, i / 4 + 0.125][i % 3]
    rows = [(i, union(i)) for i in range(200)]
    members = lambda v: None if v is None else [v if type(v) is int else None, v if type(v) is str else None, v if type(v) is float else None]
    save("pyorc_union", lambda path: write(path, "struct<i:int,u:uniontype<int,string,double>>", rows), [[i, members(v)] for i, v in rows])

    for zone in ("America/New_York", "Asia/Kathmandu"):
        z = zoneinfo.ZoneInfo(zone)
        wall = [datetime.datetime(y, m, d, h, 30, 15, us) for y in (1901, 1969, 1970, 1999, 2014, 2015, 2024, 2037)
                for m, d in ((1, 1), (3, 10), (7, 4), (11, 3)) for h in (0, 4, 23) for us in (0, 1, 999, 123456)]
        rows = [(t.replace(tzinfo=z), t.replace(tzinfo=datetime.timezone.utc)) for t in wall]
        count = lambda t: ((t - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1)) * 1000
        save("pyorc_zone_" + zone.split("/")[1].lower(),
             lambda path: write(path, "struct<t:timestamp,i:timestamp with local time zone>", rows, timezone=z), [[count(t), count(t)] for t in wall])

    save("pyorc_root_int", lambda path: write(path, "int", range(10)), [[i] for i in range(10)])


# ── Spark ────────────────────────────────────────────────────────────────────────────────────────────────────────────

QUERY = """
select cast(id as int) i, id * id * (case when id % 97 = 0 then 100000007 else 1 end) l, cast(id % 100 as tinyint) t,
  cast(id % 1000 as smallint) sh, id % 3 = 0 b, cast(id * 1.5 as float) f, sqrt(id) d, concat('name', cast(id % 20 as string)) sd,
  concat(cast(id as string), '-', cast(id * 7919 as string)) su, cast(cast(id as string) as binary) bin,
  cast(id * 1.25 - 300 as decimal(9, 2)) dec9, cast(id * 1234567.891 as decimal(18, 3)) dec18,
  cast(id as decimal(38, 10)) * cast('123456789012345.123' as decimal(20, 3)) dec38,
  date_add(date'1450-01-01', cast(id % 1500 * 1370 as int)) dt,
  case when id % 11 = 0 then null else timestamp_micros(cast((id - 250) * 86400000000 * 590 + id * 1234567 as bigint)) end ts,
  timestampadd(SECOND, cast((id - 250) * 864000 + id * 77 as int), timestamp_ntz'1969-06-01 00:00:00.123456') tn,
  case when id % 7 = 0 then null else array(cast(id as int), null, cast(id + 1 as int)) end arr,
  map(concat('k', cast(id % 5 as string)), case when id % 2 = 0 then null else id end) m,
  case when id % 13 = 0 then null else named_struct('x', case when id % 4 = 0 then null else id end, 'y', named_struct('z', cast(id as string))) end st
from range(%d)"""


def spark_files():
    import pyarrow.parquet
    import zoneinfo
    from pyspark.sql import SparkSession
    zone = sys.argv[2] if len(sys.argv) > 2 else "UTC"
    spark = (SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.sql.session.timeZone", zone)
             .config("spark.driver.extraJavaOptions", "-Duser.timezone=" + zone)
             .config("spark.sql.parquet.datetimeRebaseModeInWrite", "CORRECTED").config("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
             .getOrCreate())
    tmp = tempfile.mkdtemp()

    def one(name, n, columns=(), **options):
        df = spark.sql(QUERY.replace("range(%d)", "range(%d)" % n)).coalesce(1)
        df = df.select(*columns) if columns else df
        df.write.mode("overwrite").parquet(tmp + "/expect")
        writer = df.write.mode("overwrite")
        for k, v in options.items():
            writer = writer.option(k.replace("__", "."), v)
        writer.orc(tmp + "/orc")
        table = pyarrow.parquet.read_table(glob.glob(tmp + "/expect/*.parquet")[0])
        rows = rows_of(table)
        at = table.column_names.index("ts") if not columns else None
        z, epoch = zoneinfo.ZoneInfo(zone), datetime.datetime(1970, 1, 1)
        for row, t in zip(rows, table.column("ts").to_pylist() if not columns else []):
            if t is not None:  # what the clock read in the writer's zone
                row[at] = (t.astimezone(z).replace(tzinfo=None) - epoch) // datetime.timedelta(microseconds=1) * 1000
        save(name, lambda path: shutil.copy(glob.glob(tmp + "/orc/*.orc")[0], path), rows)

    if zone == "UTC":
        one("spark_lzo", 300, compression="lzo")
        one("spark_v011", 300, orc__write__format="0.11", orc__compress="ZLIB")
        one("spark_pre2", 200, orc__write__format="UNSTABLE-PRE-2.0", orc__compress="SNAPPY")
        one("spark_bloom", 2500, ["i", "t", "d", "sd", "su"], orc__bloom__filter__columns="i,su,sd,d", orc__row__index__stride="1000", orc__compress="ZLIB")
        one("spark_stripes", 600, orc__stripe__size="20000", orc__compress__size="1024", orc__stripe__row__count="200", orc__compress="ZSTD",
            orc__dictionary__key__threshold="1", orc__dictionary__implementation="hash")
        one("spark_proleptic", 200, orc__proleptic__gregorian="true", orc__compress="LZ4")
    else:
        one("spark_" + zone.split("/")[-1].lower(), 400, orc__compress="ZSTD")
    spark.stop()
    shutil.rmtree(tmp)


# ── Apache's own examples ────────────────────────────────────────────────────────────────────────────────────────────

def example_files():
    import pyarrow as pa
    import pyarrow.orc
    folder = os.path.join(os.path.dirname(pa.__file__), "tests", "data", "orc")
    for name in ("TestOrcFile.test1", "TestOrcFile.emptyFile", "TestOrcFile.testDate1900", "decimal"):
        path = os.path.join(folder, name + ".orc")
        rows = rows_of(pa.orc.read_table(path))
        save("example_" + name.split(".")[-1], lambda to: shutil.copy(path, to), rows, every=97 if len(rows) > 10000 else 1)


# ── Apache Hudi ──────────────────────────────────────────────────────────────────────────────────────────────────────

def hudi_files(table, answer):
    with open(answer) as f:
        snapshot = json.load(f)["snapshot"]
    names = [c.split(" ")[0] for c in snapshot["columns"]]
    for i, row in enumerate(sorted(snapshot["rows"], key=lambda r: r["id"])):
        file = glob.glob(os.path.join(table, "**", row["_hoodie_file_name"]), recursive=True)[0]
        save("hudi_%d" % (i + 1), lambda to: shutil.copy(file, to), [[row[n] for n in names]])


if __name__ == "__main__":
    what = sys.argv[1] if len(sys.argv) > 1 else ""
    if what == "spark":
        spark_files()
    elif what == "hudi":
        hudi_files(sys.argv[2], sys.argv[3])
    elif what == "examples":
        example_files()
    else:
        pyarrow_files()
        pyorc_files()
