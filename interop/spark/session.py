"""One Spark session with one release of Apache Hudi, driven by lines of JSON.

    python session.py --jar hudi-spark3.5-bundle_2.12-1.2.0.jar --work FOLDER

Each line on standard input is a request {"op": …}, each line on standard output its answer: {"ok": true, …} or
{"ok": false, "error": "class: message"}. Everything that Spark says goes to standard error. The session ends with its
standard input.

Rows in answers have the encoding of make_fixtures.py, from which the session and the encoding are taken, so that a
table made now and a table of testdata/ say the same thing in the same words.
"""

import argparse
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "testdata", "spark"))

import make_fixtures as fixtures  # noqa: E402  (found by the line above)


# Apache Hudi's readers leave these in the session, where they change what a later request of plain files answers: with the
# second, parquet-mr compares numbers by their bits, and d = 0 no longer finds a negative zero.
LEFT_BEHIND = {"spark.sql.parquet.enableVectorizedReader": "true", "spark.sql.parquet.recordLevelFilter.enabled": "false"}


class Session:
    """The operations; each takes the request's fields by name and returns the answer's fields."""

    def __init__(self, jar, work):
        self.spark = fixtures.start_spark(jar, work)
        self.wanted = dict(LEFT_BEHIND)

    def forget(self):
        """Undoes what the last request left in the session of its own accord."""
        for key, value in self.wanted.items():
            self.spark.conf.set(key, value)

    def sql(self, text, max_rows=100000):
        """Runs one statement. A query gives rows; a command gives what it prints."""
        return self.answer(self.spark.sql(text), max_rows)

    def conf(self, set={}):
        """Sets session options; null removes one."""
        for key, value in set.items():
            if key in LEFT_BEHIND:
                self.wanted[key] = LEFT_BEHIND[key] if value is None else value
            if value is None:
                self.spark.conf.unset(key)
            else:
                self.spark.conf.set(key, value)
        return {}

    def hadoop_conf(self, set={}):
        """Sets options of the Hadoop configuration, which the writers of base files ask; null removes one."""
        conf = self.spark.sparkContext._jsc.hadoopConfiguration()
        for key, value in set.items():
            if value is None:
                conf.unset(key)
            else:
                conf.set(key, value)
        return {}

    def read(self, path, format="hudi", options={}, schema=None, max_rows=100000):
        """Rows of a table or of files, all of them or their count and digest when there are more than max_rows."""
        reader = self.spark.read.format(format).options(**options)
        return self.answer((reader.schema(schema) if schema else reader).load(path), max_rows)

    def write(self, path, options={}, mode="append", columns=None, rows=None, query=None):
        """One write through Apache Hudi's data source, of literal rows with a DDL list of columns or of a query's result."""
        frame = self.spark.sql(query or fixtures.rows_query(rows, columns))
        fixtures.nullable(frame, columns).coalesce(1).write.format("hudi") \
            .options(**{**fixtures.COMMON, **options}).mode(mode).save(path)
        return {}

    def save(self, path, query, format="parquet", options={}, mode="overwrite", files=None):
        """Saves a query's result as plain files."""
        frame = self.spark.sql(query)
        (frame.coalesce(files) if files else frame).write.format(format).options(**options).mode(mode).save(path)
        return {}

    def answer(self, frame, max_rows):
        kept, fixtures.ROWS_KEPT = fixtures.ROWS_KEPT, max_rows
        try:
            return fixtures.rows_to_json(frame)
        finally:
            fixtures.ROWS_KEPT = kept


OPERATIONS = ("sql", "conf", "hadoop_conf", "read", "write", "save")


def serve(session, requests, answers):
    for line in requests:
        request = json.loads(line)
        op = request.pop("op")
        try:
            if op not in OPERATIONS:
                raise ValueError(f"unknown operation {op!r}")
            session.forget()
            answer = {"ok": True, **getattr(session, op)(**request)}
        except Exception as e:  # the caller decides what an error means
            answer = {"ok": False, "error": fixtures.error_text(e)}
        answers.write(json.dumps(answer, ensure_ascii=False) + "\n")
        answers.flush()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--jar", required=True)
    parser.add_argument("--work", required=True)
    options = parser.parse_args()
    # The JVM inherits standard output and prints to it; answers get a descriptor of their own.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    session = Session(options.jar, options.work)
    answers.write(json.dumps({"ok": True, "spark": session.spark.version}) + "\n")
    answers.flush()
    serve(session, sys.stdin, answers)
    session.spark.stop()


if __name__ == "__main__":
    main()
