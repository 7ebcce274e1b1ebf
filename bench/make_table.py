"""Makes the benchmark's table with Apache Hudi: merge on read, base files with many rows, then updates in log files.

    python make_table.py --jar hudi-spark3.5-bundle_2.12-1.2.0.jar --rows 4000000 --updates 400000 --groups 8 --out FOLDER

The updates touch keys evenly over all file groups, in two delta commits of half the updates each, with newer ordering values.
"""

import argparse
import os
import tempfile

from pyspark.sql import SparkSession

COLUMNS = """
    format_string('order-%010d', {key}) as id,
    cast({ts} as bigint) as ts,
    cast({key} % 1000 as int) as shop,
    cast(hash({key}, {ts}) % 100000 as bigint) as qty,
    cast({key} as double) * 1.25 + {ts} as price,
    cast(({key} % 100000) / 100 as decimal(12,2)) as amount,
    timestamp_micros(1700000000000000 + {key} * 1000003) as at,
    date_add(date'2020-01-01', cast({key} % 1500 as int)) as day,
    if({key} % 7 = 0, null, concat('note ', md5(cast({key} % 50000 as string)))) as note,
    {key} % 3 = 0 as open
"""


def session(jar):
    return (SparkSession.builder.master("local[2]").appName("bench")
            .config("spark.jars", jar)
            .config("spark.driver.memory", "6g")
            .config("spark.driver.host", "localhost").config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.extraJavaOptions", "-Duser.timezone=UTC")
            .config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.sql.warehouse.dir", os.path.join(tempfile.gettempdir(), "sluice-bench-warehouse"))
            .config("spark.sql.shuffle.partitions", "8")
            .config("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
            .config("spark.kryo.registrator", "org.apache.spark.HoodieSparkKryoRegistrar")
            .config("spark.sql.extensions", "org.apache.spark.sql.hudi.HoodieSparkSessionExtension")
            .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.hudi.catalog.HoodieCatalog")
            .getOrCreate())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--jar", required=True)
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--updates", type=int, required=True)
    parser.add_argument("--groups", type=int, required=True)
    parser.add_argument("--out", required=True)
    o = parser.parse_args()
    spark = session(o.jar)
    spark.sparkContext.setLogLevel("ERROR")
    options = {
        "hoodie.table.name": "orders",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": "",
        "hoodie.metadata.enable": "false",
        "hoodie.embed.timeline.server": "false",
        "hoodie.write.markers.type": "DIRECT",
        "hoodie.parquet.small.file.limit": "0",
        "hoodie.parquet.max.file.size": str(1 << 30),
        "hoodie.parquet.compression.codec": "snappy",
        "hoodie.compact.inline": "false",
        "hoodie.bulkinsert.shuffle.parallelism": str(o.groups),
        "hoodie.index.type": "SIMPLE",
    }
    rows = spark.range(o.rows).repartitionByRange(o.groups, "id").selectExpr(*split(COLUMNS.format(key="id", ts="1")))
    save(rows, options, "bulk_insert", "overwrite", o.out)
    stride = o.rows // o.updates
    for part, ts in ((0, 2), (1, 3)):
        keys = spark.range(part, o.updates, 2).selectExpr(f"id * {stride} as k")
        save(keys.selectExpr(*split(COLUMNS.format(key="k", ts=ts))), options, "upsert", "append", o.out)
    spark.stop()


def split(text):
    parts, depth = [""], 0
    for ch in text:
        depth += (ch == "(") - (ch == ")")
        if ch == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += ch
    return [p.strip() for p in parts]


def save(frame, options, operation, mode, path):
    frame.write.format("hudi").options(**options, **{"hoodie.datasource.write.operation": operation}).mode(mode).save(path)


if __name__ == "__main__":
    main()
