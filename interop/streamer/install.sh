#!/usr/bin/env bash
# Assembles the original streamer (Apache Hudi 0.14.0 on Spark 3.4) in the cache folder, once, and prints where it is as NAME=VALUE
# lines. Needs what interop/install.sh installs (Java, Maven, Python), and about 450 MB of downloads the first time.
#
# The registry has no bundle of the utilities, only their plain jar; the engine's bundle keeps some libraries under a prefix of its
# own, so the plain jar is rewritten once to match (relocate.py).
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${SLUICE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sluice}
hudi=0.14.0 spark=3.4.4 extras=3.4.1
home=$cache/streamer-$hudi

mkdir -p "$cache"
exec 9>"$cache/streamer.lock"
flock 9
if [ ! -e "$home/done" ]; then
  echo "interop/streamer/install.sh: assembling the original streamer in $home" >&2
  rm -rf "$home"
  mkdir -p "$home/lib"
  python3 -m venv "$home/venv" >&2
  "$home/venv/bin/pip" install -q --no-input "pyspark==$spark" >&2 </dev/null
  for jar in org.apache.hudi:hudi-utilities_2.12:$hudi org.apache.hudi:hudi-spark3.4-bundle_2.12:$hudi \
    org.apache.spark:spark-avro_2.12:$extras org.apache.spark:spark-streaming-kafka-0-10_2.12:$extras \
    org.apache.kafka:kafka-clients:3.3.2 com.twitter:bijection-avro_2.12:0.9.7 com.twitter:bijection-core_2.12:0.9.7; do
    mvn -q -B org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy -Dartifact="$jar" -DoutputDirectory="$home/lib" >&2 </dev/null
  done
  python3 "$here/relocate.py" "$home/lib/hudi-utilities_2.12-$hudi.jar" "$home/lib/hudi-spark3.4-bundle_2.12-$hudi.jar" "$home/lib/utilities-relocated.jar" >&2
  rm -f "$home/lib/hudi-utilities_2.12-$hudi.jar"
  touch "$home/done"
fi
cat <<END
export SLUICE_ORIGINAL_STREAMER='$home'
END
