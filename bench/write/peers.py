"""What bench/write measures Sluice against: the source files, DuckDB's COPY, Spark with Apache Hudi."""
import json
import os
import sys
import time


def source(folder, rows):
    """Parquet files of the rows: all of them, the newest one percent changed, ten percent changed, one percent to delete."""
    import duckdb

    done = os.path.join(folder, "done")
    if os.path.exists(done):
        return
    con = duckdb.connect()
    con.execute("set threads=2")
    con.execute("select setseed(0.5)")
    body = """'order-'||lpad(i::varchar,10,'0') as id, (hash(i*7+{s})%1000000)::bigint as customer,
        ['new','paid','sent','returned'][1+(hash(i+{s})%4)::int] as status, ((hash(i*3+{s})%10000000)/100)::decimal(10,2) as price,
        (hash(i*5+{s})%100)::int as qty, (hash(i*11+{s})%1000000)/1e6::double as ratio,
        timestamptz '2024-01-01' + to_microseconds((hash(i*13)%10000000000000)::bigint) as at,
        date '2024-01-01'+(hash(i*17)%365)::int as day, hash(i*19+{s})%2=0 as paid,
        case when i%10=0 then null else 'note '||(hash(i*23+{s})%100000)||' of the order' end as note,
        'r'||lpad((hash(i)%16)::varchar,2,'0') as region, i+{s} as ts"""
    for name, seed, where in [
        ("all", 0, "true"),
        ("recent", 100000000, f"i >= {rows - rows // 100}"),
        ("uniform", 200000000, "hash(i*29)%10=0"),
        ("gone", 0, "hash(i*31)%100=0"),
    ]:
        con.execute(f"copy (select {body.format(s=seed)} from range({rows}) t(i) where {where}) to '{folder}/{name}.parquet' (format parquet, row_group_size 250000)")
    open(done, "w").close()


def copy(source_file, target):
    import duckdb

    con = duckdb.connect()
    con.execute("set threads=2")
    con.execute(f"copy (select * from read_parquet('{source_file}')) to '{target}' (format parquet, partition_by (region), compression snappy)")


def spark(jar, folder, *tables):
    from pyspark.sql import SparkSession

    s = (
        SparkSession.builder.master("local[2]").config("spark.jars", jar).config("spark.driver.memory", "6g").config("spark.ui.enabled", "false")
        .config("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
        .config("spark.kryo.registrator", "org.apache.spark.HoodieSparkKryoRegistrar")
        .config("spark.sql.extensions", "org.apache.spark.sql.hudi.HoodieSparkSessionExtension").config("spark.sql.shuffle.partitions", "16").getOrCreate()
    )
    s.sparkContext.setLogLevel("ERROR")
    jvm = s._jvm.java.lang.ProcessHandle.current().pid()

    def peak():  # of the JVM in MiB, so far
        with open(f"/proc/{jvm}/status") as f:
            return next((int(line.split()[1]) >> 10 for line in f if line.startswith("VmHWM:")), 0)

    options = {
        "hoodie.table.name": "orders", "hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.partitionpath.field": "region",
        "hoodie.datasource.write.precombine.field": "ts", "hoodie.metadata.enable": "false", "hoodie.parquet.compression.codec": "snappy",
    }
    for name, op, file in [
        ("bulk_insert", "bulk_insert", "all"),
        ("upsert 1 % (newest)", "upsert", "recent"),
        ("upsert 10 % (uniform)", "upsert", "uniform"),
        ("delete 1 %", "delete", "gone"),
    ]:
        for which, table in zip(["cold", "warm"], tables):
            begun = time.time()
            s.read.parquet(f"{folder}/{file}.parquet").write.format("hudi").options(**options).option("hoodie.datasource.write.operation", op).mode("append").save(table)
            print(json.dumps({"task": name, "table": which, "seconds": time.time() - begun, "peak": peak()}), flush=True)


if __name__ == "__main__":
    kind, *args = sys.argv[1:]
    if kind == "source":
        source(args[0], int(args[1]))
    elif kind == "copy":
        copy(*args)
    else:
        spark(*args)
