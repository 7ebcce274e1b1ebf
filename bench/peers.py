"""What each peer does in the benchmark, one task for each process.

    python peers.py TASK TABLE [TARGET]

Prints {"rows", "qty"}: the number of rows and the sum of a column, so that a peer that read something else is found out.
Scans take every column of every row and build Arrow batches; nothing is printed or kept.
"""

import glob
import json
import os
import sys


def base_files(table):
    """The table has one base file in each file group, so all of them are visible."""
    return sorted(glob.glob(os.path.join(table, "*.parquet")))


def consume(batches):
    import pyarrow.compute as compute
    rows = qty = 0
    for batch in batches:
        rows += batch.num_rows
        qty += compute.sum(batch.column("qty")).as_py() or 0
    return {"rows": rows, "qty": qty}


def scan_pyarrow(table):
    import pyarrow.dataset as dataset
    return consume(dataset.dataset(base_files(table), format="parquet").to_batches())


def scan_duckdb(table):
    import duckdb
    return consume(duckdb.connect().sql(f"from read_parquet({base_files(table)})").to_arrow_reader(65536))


def scan_hudi_rs(table):
    import pyarrow as pa
    from hudi import HudiTableBuilder
    t = HudiTableBuilder.from_base_uri(table).build()
    return consume(pa.record_batch(b) for b in (t.read() if hasattr(t, "read") else t.read_snapshot()))


def scan_hudi_rs_base(table):
    import pyarrow as pa
    from hudi import HudiTableBuilder
    t = HudiTableBuilder.from_base_uri(table).with_options({"hoodie.read.use.read_optimized.mode": "true"}).build()
    return consume(pa.record_batch(b) for b in (t.read() if hasattr(t, "read") else t.read_snapshot()))


USER = "id, ts, shop, qty, price, amount, at, day, note, open"
QUOTED = ", ".join(f'"{name}"' for name in USER.split(", "))


def parquet_pyarrow(table, target):
    import pyarrow.dataset as dataset
    source = dataset.dataset(base_files(table), format="parquet")
    scanner = source.scanner(columns=USER.split(", "))
    dataset.write_dataset(scanner, target, format="parquet")
    return counted(target)


def parquet_duckdb(table, target):
    import duckdb
    os.makedirs(target)
    duckdb.connect().sql(f"copy (select {QUOTED} from read_parquet({base_files(table)})) to '{target}' "
                         "(format parquet, compression snappy, per_thread_output)")
    return counted(target)


def folders_duckdb(table, target, column):
    import duckdb
    two_threads(duckdb).sql(f"copy (select {QUOTED} from read_parquet({base_files(table)})) to '{target}' "
                            f"(format parquet, compression snappy, partition_by ({column}))")
    return {}


def two_threads(duckdb):
    connection = duckdb.connect()
    connection.sql("set threads = 2")
    return connection


def json_duckdb(table, target):
    import duckdb
    os.makedirs(target)
    two_threads(duckdb).sql(f"copy (select {QUOTED} from read_parquet({base_files(table)})) to '{target}/data.json.gz' (format json, compression gzip)")
    return {}


def csv_duckdb(table, target):
    import duckdb
    os.makedirs(target)
    two_threads(duckdb).sql(f"copy (select {QUOTED} from read_parquet({base_files(table)})) to '{target}/data.csv' (format csv)")
    return {}


ORC = "id, ts, shop, qty, price, amount, at, day"


def write_orc(table, target, columns):
    import pyarrow as pa
    import pyarrow.dataset as dataset
    import pyarrow.orc as orc
    pa.set_cpu_count(1)
    with orc.ORCWriter(target, compression="snappy") as writer:
        for batch in dataset.dataset(base_files(table), format="parquet").scanner(columns=columns.split(", "), use_threads=False).to_batches():
            if batch.num_rows:
                writer.write(pa.Table.from_batches([batch]))
    return {}


def orc_pyarrow(table, target):
    return write_orc(table, target, ORC)


def orc_all_pyarrow(table, target):
    os.makedirs(target)
    return write_orc(table, os.path.join(target, "data.orc"), USER)


def scan_orc_pyarrow(path):
    import pyarrow as pa
    import pyarrow.orc as orc
    pa.set_cpu_count(1)
    f = orc.ORCFile(path)
    return consume(f.read_stripe(i) for i in range(f.nstripes))


def counted(target):
    import pyarrow.dataset as dataset
    import pyarrow.compute as compute
    table = dataset.dataset(target, format="parquet").to_table(columns=["qty"])
    return {"rows": table.num_rows, "qty": compute.sum(table.column("qty")).as_py()}


def spark(table):
    import make_table
    session = make_table.session(os.environ["SLUICE_INTEROP_HUDI_JAR"])
    session.sparkContext.setLogLevel("OFF")
    return session, session.read.format("hudi")


def scan_spark(table):
    session, reader = spark(table)
    reader.load(table).write.format("noop").mode("overwrite").save()
    return {}


def parquet_spark(table, target):
    session, reader = spark(table)
    reader.load(table).select(*USER.split(", ")).write.parquet(target)
    return {}


def parquet_spark_base(table, target):
    session, reader = spark(table)
    reader.option("hoodie.datasource.query.type", "read_optimized").load(table).select(*USER.split(", ")).write.parquet(target)
    return {}


def json_spark(table, target):
    session, reader = spark(table)
    reader.load(table).select(*USER.split(", ")).write.option("compression", "gzip").json(target)
    return {}


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](*sys.argv[2:])), flush=True)
