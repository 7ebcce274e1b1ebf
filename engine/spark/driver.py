"""Runs one round of a Sluice job on Spark.

    spark-submit driver.py SETTINGS

Each line of the file of tasks goes through the standard input of a worker process on some executor, and each line that a
worker writes becomes a line of the file of results. Nothing else happens here: the program that wrote the settings plans
and commits. What it should know on the way goes to standard output, as "sluice: " and JSON.
"""

import json
import os
import sys
import threading

from pyspark import SparkConf, SparkContext


def say(**what):
    print("sluice: " + json.dumps(what), flush=True)


def configure(settings):
    SparkContext._ensure_initialized()  # before it, SparkConf does not know what spark-submit was given
    conf = SparkConf().setAppName(settings["name"])
    conf.set("spark.speculation", "false")
    for name in settings["environ"]:
        conf.set("spark.executorEnv." + name, os.environ[name])
    # What executors find in their environment is not for the web page and the event log.
    conf.setIfMissing("spark.redaction.regex", "(?i)secret|password|token|access[._]?key|executorEnv")
    # The workers live beside the JVM: containers are killed for what they hold together.
    if not conf.contains("spark.executor.memoryOverheadFactor"):
        slots = int(conf.get("spark.executor.cores", "1")) // int(conf.get("spark.task.cpus", "1"))
        overhead = 384 + max(1, slots) * (settings["memory"] >> 20)
        conf.setIfMissing("spark.executor.memoryOverhead", "%dm" % overhead)
    return conf


def watch(sc, settings, done):
    """Tells the progress once a second, and ends the job when the program that it is for is gone."""
    tracker = sc.statusTracker()
    last = None
    while not done.wait(1):
        try:
            os.kill(settings["planner"], 0)
        except ProcessLookupError:
            sc.cancelAllJobs()
            return
        except PermissionError:
            pass  # it is there
        for job in tracker.getJobIdsForGroup("sluice"):
            info = tracker.getJobInfo(job)
            for stage in info.stageIds if info else []:
                s = tracker.getStageInfo(stage)
                if s and (s.numCompletedTasks, s.numFailedTasks) != last:
                    last = (s.numCompletedTasks, s.numFailedTasks)
                    say(done=s.numCompletedTasks, failed=s.numFailedTasks, of=s.numTasks)


def main(settings):
    sc = SparkContext(conf=configure(settings))
    say(app=sc.applicationId)
    jvm = sc._jvm
    command = jvm.java.util.ArrayList()
    worker = settings["worker"]
    if not sc.master.startswith("local") or sc.master.startswith("local-cluster"):
        sc.addFile(worker)  # comes into the folder in which an executor runs, and may be executed there
        worker = "./" + os.path.basename(worker)
    for word in [worker] + settings["arguments"]:
        command.add(word)
    sc.setJobGroup("sluice", settings["name"], interruptOnCancel=True)
    done = threading.Event()
    watcher = threading.Thread(target=watch, args=(sc, settings, done), daemon=True)
    watcher.start()
    try:
        # The JVM reads, pipes and writes: Python on the executors is not needed.
        lines = jvm.java.nio.file.Files.readAllLines(jvm.java.io.File(settings["tasks"]).toPath())
        results = sc._jsc.parallelize(lines, settings["partitions"]).pipe(command).collect()
        path = jvm.java.io.File(settings["results"]).toPath()
        jvm.java.nio.file.Files.write(path, results, sc._gateway.new_array(jvm.java.nio.file.OpenOption, 0))
    finally:
        done.set()
        watcher.join(5)
        sc.stop()


if __name__ == "__main__":
    with open(sys.argv[1]) as f:
        asked = json.load(f)
    try:
        main(asked)
    except Exception as e:
        java = getattr(e, "java_exception", None)
        say(error=str(java.getMessage() if java is not None else "%s: %s" % (type(e).__name__, e)))
        sys.exit(1)
