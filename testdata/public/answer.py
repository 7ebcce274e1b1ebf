"""Asks Apache Hudi what it reads from the tables of other projects, and packs the answers beside them.

    python answer.py --hudi 0.15.0 --jar hudi-spark3.5-bundle_2.12-0.15.0.jar --versions 6 --tables FOLDER
    python answer.py --hudi 1.2.0  --jar hudi-spark3.5-bundle_2.12-1.2.0.jar  --versions 8 9 --tables FOLDER

FOLDER holds the unpacked tables, one folder each; <table>.json is written beside each that has one of the table versions,
with the keys of make_fixtures.py.
"""

import argparse
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "spark"))

import make_fixtures as fixtures  # noqa: E402  (found by the line above)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hudi", required=True)
    parser.add_argument("--jar", required=True)
    parser.add_argument("--versions", type=int, nargs="+", required=True)
    parser.add_argument("--tables", required=True)
    parser.add_argument("--only", nargs="+")
    o = parser.parse_args()
    spark = fixtures.start_spark(os.path.abspath(o.jar), o.tables)
    for name in sorted(os.listdir(o.tables)):
        path = os.path.join(o.tables, name)
        if not os.path.isdir(os.path.join(path, ".hoodie")) or o.only and name not in o.only:
            continue
        table = fixtures.Table(spark, o.hudi, name + ".none", o.tables, o.tables)  # clears the folder that it is given
        table.name, table.path = name, path
        table.note("published by another project; only read here")
        answers = table.expectation()
        if answers["tableVersion"] in o.versions:
            answers["proves"] = "a table of another project"
            with open(path + ".json", "w", encoding="utf-8") as f:
                f.write(fixtures.layout(answers) + "\n")
            print(name, answers["snapshot"].get("count", answers["snapshot"]), flush=True)


if __name__ == "__main__":
    main()
