"""Run scenarios through the original streamer (release 0.14.0) in one Spark session, beside Sluice's, and say where they differ.

usage: python record.py [--sluice BINARY] [--keep FOLDER] SCENARIOS.py [NAME...]

The Python is the one of interop/streamer/install.sh ($SLUICE_ORIGINAL_STREAMER/venv); pyarrow comes from $SLUICE_INTEROP_PYTHON's.
SCENARIOS.py fills CASES with calls of case(); the names choose some (prefixes). With --keep each case is recorded in the form of
testdata/streamer (case.json, input/, conf/)."""
import argparse
import base64
import datetime
import decimal
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import time
import traceback

os.environ["TZ"] = "UTC"
time.tzset()
home = os.environ["SLUICE_ORIGINAL_STREAMER"]
from pyspark.sql import Row, SparkSession  # noqa: E402
sys.path.append(os.path.dirname(os.path.dirname(os.environ["SLUICE_INTEROP_SPARK_JARS"])))
import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

COMMON = []
for conf in ("hoodie.metadata.enable=false", "hoodie.embed.timeline.server=false", "hoodie.upsert.shuffle.parallelism=2", "hoodie.insert.shuffle.parallelism=2",
             "hoodie.bulkinsert.shuffle.parallelism=2", "hoodie.delete.shuffle.parallelism=2"):
    COMMON += ["--hoodie-conf", conf]
CASES = []
START = 1579550000000


def confs(*pairs):
    return [x for p in pairs for x in ("--hoodie-conf", p)]


def step(label, put=None, args=(), mtime=None, remove=(), base=None, kind=None):
    """A run: files that appear (name -> text, bytes, table or function of a path; conf/NAME for those of conf/), and the arguments beside the common ones."""
    return dict(label=label, put=put or {}, args=list(args), mtime=mtime, remove=list(remove), base=base, kind=kind)


def case(name, about, steps, args=(), kind="COPY_ON_WRITE"):
    CASES.append(dict(name=name, about=about, steps=steps, args=list(args), kind=kind))


def plain(v):
    if isinstance(v, Row):
        return {k: plain(v[k]) for k in v.__fields__}
    if isinstance(v, dict):
        return {str(plain(k)): plain(x) for k, x in v.items()}
    if isinstance(v, (list, tuple)):
        return [plain(x) for x in v]
    if isinstance(v, datetime.datetime):
        return v.isoformat(timespec="microseconds")
    if isinstance(v, datetime.date):
        return v.isoformat()
    if isinstance(v, decimal.Decimal):
        return format(v, "f")
    if isinstance(v, (bytes, bytearray)):
        return base64.b64encode(bytes(v)).decode()
    if isinstance(v, float) and (v != v or v in (float("inf"), float("-inf"))):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(v)]
    return v


class Session:
    def __init__(self):
        jars = ":".join(sorted(glob.glob(os.path.join(home, "lib", "*.jar"))))
        self.spark = (SparkSession.builder.master("local[2]").config("spark.driver.extraClassPath", jars).config("spark.driver.memory", "2g")
                      .config("spark.serializer", "org.apache.spark.serializer.KryoSerializer").config("spark.sql.session.timeZone", "UTC")
                      .config("spark.driver.extraJavaOptions", "-Duser.timezone=UTC").config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "2")
                      .getOrCreate())
        self.spark.sparkContext.setLogLevel(os.environ.get("LOG", "OFF"))
        self.jvm = self.spark.sparkContext._jvm

    def original(self, args, multi=False):
        """None, or the error: classes and messages, outermost first."""
        gateway = self.spark.sparkContext._gateway
        array = gateway.new_array(gateway.jvm.java.lang.String, len(args))
        for i, a in enumerate(args):
            array[i] = a
        try:
            tool = self.jvm.java.lang.Class.forName("org.apache.hudi.utilities.streamer.HoodieStreamer")  # getConfig is two methods, which py4j takes for none
            kinds = gateway.new_array(gateway.jvm.java.lang.Class, 1)
            kinds[0] = array.getClass()
            values = gateway.new_array(gateway.jvm.java.lang.Object, 1)
            values[0] = array
            cfg = tool.getMethod("getConfig", kinds).invoke(None, values)
            self.jvm.org.apache.hudi.utilities.streamer.HoodieStreamer(cfg, self.spark.sparkContext._jsc).sync()
        except Exception as e:  # noqa: BLE001
            cause = getattr(e, "java_exception", None)
            if cause is None:
                return [{"class": type(e).__name__, "message": str(e)}]
            out = []
            if cause.getClass().getName().endswith("InvocationTargetException"):
                cause = cause.getCause()
            while cause is not None and len(out) < 12:
                out.append({"class": cause.getClass().getName(), "message": str(cause.getMessage() or "")})
                cause = cause.getCause()
            return out
        finally:
            self.spark.catalog.clearCache()
        return None

    def rows(self, table, query="snapshot"):
        try:
            df = self.spark.read.format("hudi").option("hoodie.datasource.query.type", query).load(table)
            columns = df.columns
            if os.environ.get("AS_TEXT"):
                df = df.selectExpr(*["cast(%s as string) %s" % (f.name, f.name) if f.dataType.typeName() in ("date", "timestamp") else f.name for f in df.schema.fields])
            return columns, [{k: plain(r[k]) for k in columns if k != "_hoodie_file_name"} for r in df.collect()]
        except Exception as e:  # noqa: BLE001
            return None, "unreadable: " + str(e)[:600]


def timeline(table):
    names = sorted(os.path.basename(f) for f in glob.glob(os.path.join(table, ".hoodie", "*")) if re.match(r"\d{17}\.", os.path.basename(f)))
    return names


def completed(table):
    return [n for n in timeline(table) if re.fullmatch(r"\d{17}\.(commit|deltacommit|replacecommit)", n)]


def labels(table):
    return {t: "C%d" % (i + 1) for i, t in enumerate(sorted({n[:17] for n in timeline(table)}))}


def relabel(value, names):
    text = json.dumps(value)
    for t, l in names.items():
        text = text.replace(t, l)
    return json.loads(text)


def commit(table, name):
    with open(os.path.join(table, ".hoodie", name)) as f:
        return json.load(f)


def properties(table):
    try:
        with open(os.path.join(table, ".hoodie", "hoodie.properties")) as f:
            return sorted(l.strip() for l in f if not l.startswith("#"))
    except OSError:
        return []


def write(path, value, mtime):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if callable(value):
        value(path)
    elif isinstance(value, pa.Table):
        pq.write_table(value, path)
    else:
        with open(path, "wb") as f:
            f.write(value if isinstance(value, bytes) else value.encode())
    if mtime:
        os.utime(path, (mtime / 1000, mtime / 1000))


COMPARED = re.compile(r"hoodie\.(table\.(recordkey|partition|precombine|keygenerator|type|name|version)|datasource)")


class Side:
    def __init__(self, where):
        self.dir = where
        shutil.rmtree(where, ignore_errors=True)
        os.makedirs(os.path.join(where, "input"))
        self.table = os.path.join(where, "table")
        self.seen = set()

    def state(self, session):
        names = completed(self.table)
        fresh = [n for n in names if n not in self.seen]
        self.seen |= set(names)
        order = {n[:17]: "W%d" % (i + 1) for i, n in enumerate(names)}
        commits = []
        for n in fresh:
            meta = commit(self.table, n)
            extra = {k: v for k, v in meta.get("extraMetadata", {}).items() if k != "schema"}
            fields = None
            if meta.get("extraMetadata", {}).get("schema"):
                fields = [[f["name"], f["type"]] for f in json.loads(meta["extraMetadata"]["schema"])["fields"]]
            stats = {p: [sum(s.get(k, 0) or 0 for s in v) for k in ("numWrites", "numInserts", "numUpdateWrites", "numDeletes")] for p, v in sorted(meta["partitionToWriteStats"].items())}
            commits.append(dict(action=n.split(".")[1], operation=meta.get("operationType"), extra=relabel(extra, order), fields=fields, stats=stats))
        columns, rows = session.rows(self.table) if names else (None, None)
        return commits, columns, relabel(rows, order), order


def comparable(rows):
    if not isinstance(rows, list):
        return rows
    return sorted(json.dumps({k: v for k, v in r.items() if k != "_hoodie_commit_seqno"}, sort_keys=True, ensure_ascii=False) for r in rows)


def run(session, c, sluice, keep, root):
    a, b = Side(os.path.join(root, c["name"], "orig")), Side(os.path.join(root, c["name"], "ours"))
    doc = dict(name=c["name"], about=c["about"], table_type=c["kind"], hoodie_properties=[], steps=[])
    bad = 0
    removed = {}
    failed = []
    for i, s in enumerate(c["steps"]):
        mtime = s["mtime"] or START + i * 10000
        put = []
        gone = s["remove"] + failed  # what a step fails on is taken away again
        failed = []
        for side in (a, b):
            for name in gone:
                os.remove(os.path.join(side.dir, "input", name))
        for name, value in s["put"].items():
            for side in (a, b):
                v = value
                if isinstance(v, str):
                    v = v.replace("${CASE}", side.dir)
                path = os.path.join(side.dir, name if name.startswith("conf/") else "input/" + name)
                write(path, v, None if name.startswith("conf/") else mtime)
            put.append({"conf": name[5:]} if name.startswith("conf/") else {"file": name, "mtime_ms": mtime})
        full = (["--target-base-path", "${CASE}/table", "--target-table", c["name"], "--table-type", s["kind"] or c["kind"]] + COMMON + c["args"] if s["base"] is None else list(s["base"])) + s["args"]
        error = session.original([x.replace("${CASE}", a.dir) for x in full])
        done = subprocess.run([sluice, "streamer"] + [x.replace("${CASE}", b.dir) for x in full], capture_output=True, text=True)
        ca, cola, ra, oa = a.state(session)
        cb, colb, rb, ob = b.state(session)
        notes = []
        if (error is None) != (done.returncode == 0):
            notes.append("EXIT original %s, ours %d" % ("ok" if error is None else "fails", done.returncode))
        strip = lambda cs: [{k: v for k, v in x.items() if k not in ("fields", "stats")} for x in cs]
        if strip(ca) != strip(cb):
            notes.append("COMMITS\n      orig %s\n      ours %s" % (strip(ca), strip(cb)))
        elif [x["fields"] for x in ca] != [x["fields"] for x in cb]:
            notes.append("SCHEMA\n      orig %s\n      ours %s" % ([x["fields"] for x in ca], [x["fields"] for x in cb]))
        if [x["stats"] for x in ca] != [x["stats"] for x in cb]:
            notes.append("stats\n      orig %s\n      ours %s" % ([x["stats"] for x in ca], [x["stats"] for x in cb]))
        x, y = comparable(ra), comparable(rb)
        if x != y and not (notes and notes[0].startswith("EXIT")):
            if isinstance(x, list) and isinstance(y, list):
                x, y = [v for v in x if v not in y], [v for v in y if v not in x]
            x, y = [v[:6] if isinstance(v, list) else v for v in (x, y)]
            notes.append("ROWS\n      orig %s\n      ours %s" % ("\n           ".join(x) if isinstance(x, list) else x, "\n           ".join(y) if isinstance(y, list) else y))
        pa_, pb = [[l for l in properties(t.table) if COMPARED.match(l)] for t in (a, b)]
        if pa_ != pb:
            notes.append("properties\n      orig %s\n      ours %s" % ([l for l in pa_ if l not in pb], [l for l in pb if l not in pa_]))
        if error is not None or done.returncode != 0:
            notes.append("error\n      orig %s\n      ours %d %s" % (["%s: %s" % (e["class"].split(".")[-1], e["message"][:240]) for e in (error or [])][-3:], done.returncode, re.sub(r"(?m)^round .*|^\d+ rounds.*", "", done.stderr).strip().replace(b.dir, "")[-450:]))
        hard = [n for n in notes if n[0].isupper()]
        bad += bool(hard)
        print("%s %s[%d] %s" % ("DIFF " if hard else "agree", c["name"], i, s["label"]))
        for n in notes:
            print("    " + n)
        sys.stdout.flush()
        names = labels(a.table)
        entry = dict(label=s["label"], put=put, args=full, ok=error is None)
        if gone:
            entry["remove"] = gone
        if error is not None:
            failed = [n for n in s["put"] if not n.startswith("conf/")]
            entry["error"] = [{"class": e["class"], "message": e["message"].split("\n\tat ")[0].replace(a.dir, "${CASE}")} for e in error]
        fresh = sorted(a.seen - removed.setdefault("seen", set()))
        removed["seen"] = set(a.seen)
        entry["new_commits"] = [dict(instant=relabel(n, names), operationType=x["operation"], extraMetadata=dict(schema="(schema)", **relabel(commit_extra(a.table, n), names))) for n, x in zip(fresh, ca)]
        if ca and ca[-1]["fields"]:
            entry["commit_schema_fields"] = ca[-1]["fields"]
        if cola:
            entry["columns"] = cola
        if isinstance(ra, list):
            back = {w: names[t] for t, w in oa.items()}
            entry["rows_snapshot"] = [dict(r, _hoodie_commit_time=back[r["_hoodie_commit_time"]], _hoodie_commit_seqno=re.sub(r"^W\d+", lambda m: back[m[0]], r["_hoodie_commit_seqno"])) for r in ra]
        doc["steps"].append(entry)
    doc["hoodie_properties"] = properties(a.table)
    if keep:
        to = os.path.join(keep, c["name"])
        shutil.rmtree(to, ignore_errors=True)
        os.makedirs(to)
        for s in c["steps"]:  # files as they were put, also those that were removed later
            for name, value in s["put"].items():
                write(os.path.join(to, name if name.startswith("conf/") else "input/" + name), value, None)
        with open(os.path.join(to, "case.json"), "w") as f:
            json.dump(doc, f, ensure_ascii=False, separators=(",", ":"))
            f.write("\n")
    return bad


def commit_extra(table, name):
    return {k: v for k, v in commit(table, name).get("extraMetadata", {}).items() if k != "schema"}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--sluice", default="sluice")
    p.add_argument("--keep")
    p.add_argument("--root", default="/tmp/streamer-record")
    p.add_argument("scenarios")
    p.add_argument("names", nargs="*")
    o = p.parse_args()
    scope = dict(globals())
    with open(o.scenarios) as f:
        exec(compile(f.read(), o.scenarios, "exec"), scope)  # noqa: S102
    session = Session()
    for c in CASES:
        if o.names and not any(c["name"].startswith(n) for n in o.names):
            continue
        try:
            run(session, c, o.sluice, o.keep, o.root)
        except Exception:  # noqa: BLE001
            traceback.print_exc(file=sys.stdout)
    session.spark.stop()


if __name__ == "__main__":
    main()
