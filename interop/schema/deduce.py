"""Apache Hudi's own answer to which schema a write gives a table, driven by lines of JSON.

    python deduce.py --jar hudi-spark3.5-bundle_2.12-1.2.0.jar --work FOLDER --hudi 1.2.0

A request is {"op": "deduce", "questions": [{"table": SCHEMA or null, "rows": SCHEMA, "options": {…}}, …]}, its answer
{"ok": true, "answers": [SCHEMA, or "!" and the class of the exception, …]}.
"""

import argparse
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "hudi", "schema", "testdata", "reconcile"))

import make_cases  # noqa: E402  (found by the line above)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--jar", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--hudi", required=True)
    options = parser.parse_args()
    # The JVM inherits standard output and prints to it; answers get a descriptor of their own.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    spark = make_cases.fixtures.start_spark(options.jar, options.work)
    deducer = make_cases.Deducer(spark, options.hudi >= "1")
    answers.write(json.dumps({"ok": True}) + "\n")
    answers.flush()
    for line in sys.stdin:
        questions = json.loads(line)["questions"]
        got = [deducer.ask(q["table"], q["rows"], q["options"]) for q in questions]
        answers.write(json.dumps({"ok": True, "answers": got}) + "\n")
        answers.flush()
    spark.stop()


if __name__ == "__main__":
    main()
