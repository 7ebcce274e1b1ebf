"""Asks Apache Spark what the statements of streamer/transform/testdata/spark.sql.txt give, and records schemas and rows.

    eval "$(interop/install.sh)"
    "$SLUICE_INTEROP_PYTHON" interop/sparksql/record.py

It writes streamer/transform/testdata/source.parquet, the rows that the statements read, and testdata/spark.json.gz, the answers. A line
of spark.sql.txt is an expression over those rows, or a whole statement when it begins with SELECT, WITH or VALUES. Statements that
have an answer already are not asked again, unless --all is given: use it after a change of the rows.
"""

import datetime
import decimal
import glob
import gzip
import json
import math
import os
import shutil
import sys

os.environ["TZ"] = "UTC"
from pyspark.sql import SparkSession, Row  # noqa: E402

here = os.path.dirname(os.path.abspath(__file__))
data = os.path.join(here, "..", "..", "streamer", "transform", "testdata")

spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.sql.session.timeZone", "UTC")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "1")
    .config("spark.sql.adaptive.enabled", "false")
    .config("spark.sql.parquet.datetimeRebaseModeInWrite", "CORRECTED")
    .config("spark.sql.parquet.datetimeRebaseModeInRead", "CORRECTED")
    .config("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    .config("spark.driver.extraJavaOptions", "-Duser.timezone=UTC")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("OFF")

ROWS = """
SELECT * FROM VALUES
 (1, 'alpha', '12', CAST(7 AS INT), 7000000000L, CAST(1.5 AS FLOAT), 2.5D, CAST(12.34 AS DECIMAL(10,2)), CAST('12345678901234567890.1234567890' AS DECIMAL(38,10)),
  DATE'2024-02-29', TIMESTAMP'2024-02-29 12:34:56.789012', TIMESTAMP_NTZ'2024-02-29 12:34:56.789', true, X'CAFE', array(3, 1, 2), array('b', 'a'), map('k', 1, 'l', 2),
  named_struct('a', 1, 'B', named_struct('c', 'deep')), '2024-02-29', '2024-02-29 12:34:56', 5Y, 500S, '{"a":{"b":[1,2,{"c":"x"}]},"n":null,"t":"q\\\\"q"}'),
 (2, 'Beta gamma', ' 3.7 ', -8, -9223372036854775808L, CAST(-0.1 AS FLOAT), -2.5D, -0.05, -0.0000000001,
  DATE'1969-12-31', TIMESTAMP'1969-12-31 23:59:59.999999', TIMESTAMP_NTZ'1900-01-01 00:00:00', false, X'', array(1, NULL, 1), array('x', NULL, 'y'), map('k', NULL),
  named_struct('a', NULL, 'B', NULL), '1969-12-31 ', '1969-12-31T23:59:59.999999Z', -128Y, -32768S, 'no json'),
 (3, '', 'abc', 0, 0L, CAST(0 AS FLOAT), 0.0D, 0.00, 0, DATE'1970-01-01', TIMESTAMP'1970-01-01 00:00:00', TIMESTAMP_NTZ'1970-01-01 00:00:00', NULL, X'00', array(), array(), map(),
  named_struct('a', 0, 'B', named_struct('c', '')), '', '', 0Y, 0S, '[1, 2.50, true]'),
 (4, 'ünïcödé straße', '-1e3', 2147483647, 9223372036854775807L, CAST('NaN' AS FLOAT), double('NaN'), 99999999.99, 9999999999999999999999999999.9999999999,
  DATE'9999-12-31', TIMESTAMP'9999-12-31 23:59:59', TIMESTAMP_NTZ'2001-09-09 01:46:40.5', true, X'FF00', array(-5), array('it''s'), map('z', 26),
  named_struct('a', 2147483647, 'B', named_struct('c', NULL)), '2024-2-3', '2024-02-03 4:5', 127Y, 32767S, '{"a":"str"}'),
 (5, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
 (6, '  pad  ', '99999999999999999999', -2147483648, 1L, CAST('Infinity' AS FLOAT), double('Infinity'), 0.05, 1.5,
  DATE'0001-01-01', TIMESTAMP'0001-01-01 00:00:00', TIMESTAMP_NTZ'0001-01-01 00:00:00', false, X'6162', array(2, 2, 3), array('a,b', 'c'), map('a', 1, 'b', 2, 'c', 3),
  named_struct('a', -1, 'B', named_struct('c', 'z')), '2024', '2024-13-01', 1Y, 1S, '{"a":[]}'),
 (7, 'a,b;c', '+5', 1000, 1577836800L, CAST(1E10 AS FLOAT), 1.0E-5D, 2.675, 2.5, DATE'2020-01-01', TIMESTAMP'2020-01-01 00:00:00', TIMESTAMP_NTZ'2020-06-30 23:59:59.999999', true, X'0102030405060708090A0B0C0D0E0F',
  array(10, 20, 30, 40), array('one', 'two', 'three'), map('one', 1), named_struct('a', 5, 'B', named_struct('c', 'longer than twelve bytes')), '20200101', '2020-01-01 00:00:00+02:00', 9Y, 9S, '{"a":{"b":{"deep":1.50}}}'),
 (8, 'x%y_z', '0x1F', 5, 5L, CAST(3.4E38 AS FLOAT), 123456789.125D, 1.00, 100, DATE'2023-12-31', TIMESTAMP'2023-12-31 08:00:00.5', TIMESTAMP_NTZ'2023-12-31 08:00:00.5', false, X'7A',
  array(NULL), array(''), map('k', 0), named_struct('a', 8, 'B', named_struct('c', 'k')), '31/12/2023', '2023-12-31 08:00:00 Europe/Paris', -1Y, -1S, '')
AS t(id, s, n, i, b, f, d, x, y, dt, ts, tn, bo, bin, arr, sa, m, st, tx, tt, by, sm, js)
"""


def plain(v):
    if v is None or isinstance(v, (bool, str)):
        return v
    if isinstance(v, int):
        return v if abs(v) < 1 << 53 else {"int": str(v)}
    if isinstance(v, float):
        return {"float": "NaN" if math.isnan(v) else repr(v)}
    if isinstance(v, decimal.Decimal):
        return {"decimal": format(v, "f")}
    if isinstance(v, datetime.datetime):
        return {"time": v.replace(tzinfo=None).isoformat(timespec="microseconds")}
    if isinstance(v, datetime.date):
        return {"date": v.isoformat()}
    if isinstance(v, (bytes, bytearray)):
        return {"hex": bytes(v).hex()}
    if isinstance(v, Row):
        return {"struct": [plain(x) for x in v]}
    if isinstance(v, dict):
        return {"map": [[plain(k), plain(x)] for k, x in v.items()]}
    if isinstance(v, list):
        return [plain(x) for x in v]
    raise TypeError(type(v))


def ask(sql):
    try:
        df = spark.sql(sql)
        return {
            "sql": sql,
            "schema": [[f.name, f.dataType.simpleString(), f.nullable] for f in df.schema],
            "rows": [[plain(v) for v in r] for r in df.collect()],
        }
    except Exception as e:  # noqa: BLE001
        return {"sql": sql, "error": str(e).strip().splitlines()[0][:200]}


answered = {}
if "--all" in sys.argv:
    tmp = os.path.join(data, "tmp-parquet")
    spark.sql(ROWS).coalesce(1).write.mode("overwrite").option("compression", "gzip").parquet(tmp)
    shutil.move(glob.glob(tmp + "/*.parquet")[0], os.path.join(data, "source.parquet"))
    shutil.rmtree(tmp)
else:
    with gzip.open(os.path.join(data, "spark.json.gz")) as f:
        answered = {c["sql"]: c for c in json.load(f)["cases"]}
spark.read.parquet(os.path.join(data, "source.parquet")).createOrReplaceTempView("src")

cases = []
for line in open(os.path.join(data, "spark.sql.txt"), encoding="utf-8"):
    line = line.strip()
    if not line or line.startswith("#"):
        continue
    if line.split()[0].upper() not in ("SELECT", "WITH", "VALUES"):
        line = "SELECT id, " + line + " AS v FROM src"
    cases.append(answered.get(line) or ask(line))
    if "error" in cases[-1]:
        print(line, "->", cases[-1]["error"], file=sys.stderr)
out = json.dumps({"spark": spark.version, "cases": cases}, ensure_ascii=False, indent=0)
with open(os.path.join(data, "spark.json.gz"), "wb") as f, gzip.GzipFile("", "wb", 9, f, mtime=0) as z:
    z.write(out.encode())
print(len(cases), "answers of Spark", spark.version)
