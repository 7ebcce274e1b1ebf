"""DuckDB, PyArrow and hudi-rs in one Python process, driven by lines of JSON.

    python session.py

Each line on standard input is a request {"op": …}, each line on standard output its answer: {"ok": true, "count",
"columns", "rows"} or {"ok": false, "error": "class: message"}. Values have the encoding that interop/rows describes.
"""

import base64
import datetime
import decimal
import json
import math
import os
import sys

import pyarrow as pa


def encode(value, kind):
    """An Arrow value as JSON."""
    if value is None:
        return None
    if pa.types.is_floating(kind):
        return value if math.isfinite(value) else {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return [encode(v, kind.value_type) for v in value]
    if pa.types.is_map(kind):
        return [{"key": encode(k, kind.key_type), "value": encode(v, kind.item_type)} for k, v in value]
    if pa.types.is_struct(kind):
        return {f.name: encode(value[f.name], f.type) for f in kind}
    if pa.types.is_timestamp(kind):
        return value.replace(tzinfo=None).isoformat(timespec="microseconds") + ("Z" if kind.tz else "")
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value


# Spark's names, so that answers of all peers have the same types.
NAMES = {pa.bool_(): "boolean", pa.int8(): "tinyint", pa.int16(): "smallint", pa.int32(): "int", pa.int64(): "bigint",
         pa.float32(): "float", pa.float64(): "double", pa.string(): "string", pa.large_string(): "string",
         pa.binary(): "binary", pa.large_binary(): "binary", pa.date32(): "date"}


def type_name(kind):
    if kind in NAMES:
        return NAMES[kind]
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"array<{type_name(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<{type_name(kind.key_type)},{type_name(kind.item_type)}>"
    if pa.types.is_struct(kind):
        return "struct<" + ",".join(f"{f.name}:{type_name(f.type)}" for f in kind) + ">"
    return str(kind)


def microseconds(table):
    """Nanoseconds have no place in the encoding; a value that needs them is refused, not rounded."""
    fields = [pa.field(f.name, pa.timestamp("us", f.type.tz)) if pa.types.is_timestamp(f.type) and f.type.unit == "ns" else f
              for f in table.schema]
    return table.cast(pa.schema(fields))


def answer(table):
    table = microseconds(table)
    columns = [(f.name, f.type, table.column(i).to_pylist()) for i, f in enumerate(table.schema)]
    rows = [{name: encode(values[i], kind) for name, kind, values in columns} for i in range(table.num_rows)]
    return {"count": len(rows), "columns": [f"{name} {type_name(kind)}" for name, kind, _ in columns], "rows": rows}


def duckdb_rows(text):
    import duckdb
    with duckdb.connect() as connection:
        result = connection.sql(text)
        return answer(result.to_arrow_table() if hasattr(result, "to_arrow_table") else result.arrow().read_all())


def pyarrow_rows(path, format="parquet", columns=None):
    import pyarrow.dataset as dataset
    return answer(dataset.dataset(path, format=format).to_table(columns=columns))


def parquet_files(path):
    """What the footer of every Parquet file below path says; for tests of what we write, not of its rows."""
    import pyarrow.parquet as parquet
    found = []
    for folder, _, files in os.walk(path):
        for file in sorted(files):
            if file.endswith(".parquet"):
                footer = parquet.ParquetFile(os.path.join(folder, file))
                found.append({"file": os.path.relpath(os.path.join(folder, file), path), "rows": footer.metadata.num_rows,
                              "row_groups": footer.metadata.num_row_groups, "created_by": footer.metadata.created_by,
                              "schema": str(footer.schema),
                              "keys": sorted(k.decode() for k in footer.metadata.metadata or {})})
    return {"files": found}


def orc_rows(path):
    import pyarrow.orc as orc
    return answer(orc.ORCFile(path).read())


def hudi_rs(path, options=None):
    from hudi import HudiTableBuilder
    builder = HudiTableBuilder.from_base_uri(path)
    if options:
        builder = builder.with_options(options)
    table = builder.build()
    batches = table.read() if hasattr(table, "read") else table.read_snapshot()
    batches = [pa.record_batch(b) for b in batches]
    return answer(pa.Table.from_batches(batches)) if batches else {"count": 0, "columns": [], "rows": []}


OPERATIONS = {f.__name__: f for f in (duckdb_rows, pyarrow_rows, parquet_files, orc_rows, hudi_rs)}


def main():
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    answers.write(json.dumps({"ok": True}) + "\n")
    answers.flush()
    for line in sys.stdin:
        request = json.loads(line)
        try:
            result = {"ok": True, **OPERATIONS[request.pop("op")](**request)}
        except BaseException as e:  # hudi-rs panics are no Exception
            result = {"ok": False, "error": f"{type(e).__name__}: {e}"}
        answers.write(json.dumps(result, ensure_ascii=False) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
