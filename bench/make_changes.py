"""Makes change files for the streamer benchmark: make_changes.py FOLDER FORMAT ROWS CHANGES FILES

FOLDER/base.<format> holds ROWS orders, FOLDER/change<n>.<format> CHANGES each, nine tenths of them updates. Every file has a later
modification time than the one before. FOLDER/schema.avsc is the Avro schema of the records."""
import json
import os
import random
import sys

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq

folder, fmt, rows, changes, files = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])
rng = random.Random(42)
os.makedirs(folder, exist_ok=True)


def region(order):
    return "region%d" % (order % 8)


def table(ids, ts):
    return pa.table({
        "order_id": pa.array(ids, pa.int64()),
        "region": pa.array([region(i) for i in ids]),
        "qty": pa.array([rng.randrange(1000) for _ in ids], pa.int32()),
        "price": pa.array([rng.randrange(100000) / 100 for _ in ids], pa.float64()),
        "customer": pa.array(["customer %d" % rng.randrange(100000) for _ in ids]),
        "note": pa.array(["%032x" % rng.getrandbits(128) for _ in ids]),
        "ts": pa.array([ts] * len(ids), pa.int64()),
    })


def save(name, data, at):
    path = os.path.join(folder, name + "." + fmt)
    if fmt == "parquet":
        pq.write_table(data, path)
    elif fmt == "csv":
        csv.write_csv(data, path, csv.WriteOptions(include_header=False))
    else:
        with open(path, "w") as out:
            for row in data.to_pylist():
                out.write(json.dumps(row) + "\n")
    os.utime(path, (at, at))


save("base", table(range(rows), 0), 1579550000)
for n in range(1, files + 1):
    old = rng.sample(range(rows), changes * 9 // 10)
    new = range(rows + n * changes, rows + n * changes + changes - len(old))
    save("change%d" % n, table(old + list(new), n), 1579550000 + n)
kinds = [("order_id", "long"), ("region", "string"), ("qty", "int"), ("price", "double"), ("customer", "string"), ("note", "string"), ("ts", "long")]
with open(os.path.join(folder, "schema.avsc"), "w") as out:
    json.dump({"type": "record", "name": "orders", "fields": [{"name": n, "type": ["null", t], "default": None} for n, t in kinds]}, out)
