"""Packs table folders, zipped by the programs that made them, into the form that the tests read.

    python3 pack.py spark    FROM spark        # <name>.zip + <name>.json  ->  <name>.tar.zst (expect.json, table/...)
    python3 pack.py public   FROM public       # the same
    python3 pack.py exporter FROM exporter     # tables/*.zip + *.json     ->  the same
    python3 pack.py history  FROM history      # <name>/ + <name>.json     ->  the same

A table of a few rows is dozens of small files that repeat each other, and zip compresses each one alone: one
Zstandard stream over the whole folder takes a third of the room. Needs the `zstd` command.
"""

import io
import os
import subprocess
import sys
import tarfile
import time
import zipfile


def table_files(path):
    """(name, modification time, bytes) of every file of the table, relative to the table's own folder."""
    if os.path.isdir(path):
        yield from folder_files(path)
        return
    with zipfile.ZipFile(path) as z:
        entries = [i for i in z.infolist() if not i.is_dir() and not i.filename.startswith("__MACOSX/")
                   and not i.filename.endswith(".DS_Store")]
        tops = {i.filename.split("/")[0] for i in entries}
        inner = tops.pop() + "/" if len(tops) == 1 and ".hoodie" not in tops else ""
        for i in sorted(entries, key=lambda i: i.filename):
            when = int(time.mktime((*i.date_time, 0, 0, 0)))
            yield i.filename[len(inner):], when, z.read(i)


def folder_files(path):
    for folder, _, files in sorted(os.walk(path)):
        for file in sorted(files):
            full = os.path.join(folder, file)
            if not file.endswith(".crc"):
                with open(full, "rb") as f:
                    yield os.path.relpath(full, path), int(os.path.getmtime(full)), f.read()


def pack(table_path, json_path, out):
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as tar:
        def add(name, when, data):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime, entry.mode = len(data), when, 0o644
            tar.addfile(entry, io.BytesIO(data))
        if json_path:
            with open(json_path, "rb") as f:
                add("expect.json", 0, f.read())
        for name, when, data in table_files(table_path):
            add("table/" + name, when, data)
    with open(out, "wb") as f:
        subprocess.run(["zstd", "-q", "-19", "--long=24", "-c"], input=raw.getvalue(), stdout=f, check=True)


def main(kind, source, target):
    os.makedirs(target, exist_ok=True)
    tables = os.path.join(source, "tables") if kind == "exporter" else source
    for file in sorted(os.listdir(tables)):
        name, extension = os.path.splitext(file)
        if extension == ".zip" or os.path.isdir(os.path.join(tables, file, ".hoodie")):
            name = name if extension == ".zip" else file
            answers = os.path.join(source, name + ".json")
            pack(os.path.join(tables, file), answers, os.path.join(target, name + ".tar.zst"))


if __name__ == "__main__":
    os.environ["TZ"] = "UTC"
    time.tzset()
    main(*sys.argv[1:])
