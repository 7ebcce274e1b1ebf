#!/usr/bin/env bash
# Installs what the interop tests need beside Go into the cache folder, once, and prints where it is as NAME=VALUE lines.
#
#   eval "$(interop/install.sh)"     # then: go test -tags interop ./interop/...
#
# Everything comes through the ordinary clients as this machine has set them up (pip, Maven, npm, apt): a Python with Spark,
# DuckDB, PyArrow and hudi-rs, the Spark bundles of Apache Hudi, Azurite and HDFS. On Debian and its kin, missing system packages are
# installed too when the script runs as root; elsewhere it says what is missing.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${SLUICE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sluice}
releases=(0.15.0 1.2.0)

say() { echo "interop/install.sh: $*" >&2; }
fail() { say "$*"; exit 1; }

# Two runs at once (make interop beside make bench) wait for each other.
mkdir -p "$cache"
exec 9>"$cache/install.lock"
flock 9

# install PACKAGE...: Debian packages, by root alone.
updated=
install() {
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    fail "something is missing here that Debian calls $*: install it and run this again"
  fi
  say "installing $*"
  if [ -z "$updated" ]; then apt-get update -qq >&2; updated=1; fi
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >&2 </dev/null ||
    fail "apt-get could not install $*"
}

# need COMMAND PACKAGE...: the same, when a command is absent.
need() {
  if ! command -v "$1" >/dev/null; then install "${@:2}"; fi
}

# A Java that Spark 3.5 runs on: 8, 11 or 17.
java_version() { java -version 2>&1 | sed -n 's/.* version "\(1\.\)\{0,1\}\([0-9]*\).*/\2/p' | head -1; }
pick_java() {
  local home
  for home in "${JAVA_HOME:-}" /usr/lib/jvm/java-17-openjdk-*; do
    if [ -n "$home" ] && [ -x "$home/bin/java" ]; then
      case $(PATH="$home/bin:$PATH" java_version) in 8 | 11 | 17) JAVA_HOME=$home; return ;; esac
    fi
  done
  need java openjdk-17-jre-headless
  case $(java_version) in
    8 | 11 | 17) JAVA_HOME=$(dirname "$(dirname "$(readlink -f "$(command -v java)")")") ;;
    *) fail "Spark 3.5 needs Java 8, 11 or 17; 'java' is $(java_version). Set JAVA_HOME to one of those" ;;
  esac
}

# The Python environment is named after its requirements, so that a change of a pin makes a new one.
pick_python() {
  local sum
  sum=$(sha256sum <"$here/requirements.txt" | cut -c1-12)
  python=$cache/python-$sum/bin/python
  if [ -e "$cache/python-$sum/done" ]; then return; fi
  need python3 python3
  say "making a Python environment in $cache/python-$sum"
  rm -rf "$cache/python-$sum"
  if ! python3 -m venv "$cache/python-$sum" >&2; then
    install python3-venv # Debian splits it from python3
    rm -rf "$cache/python-$sum"
    python3 -m venv "$cache/python-$sum" >&2 || fail "python3 -m venv failed"
  fi
  "$python" -m pip install -q --no-input -r "$here/requirements.txt" >&2 </dev/null ||
    fail "pip could not install $here/requirements.txt"
  touch "$cache/python-$sum/done"
}

pick_jars() {
  local release jar
  mkdir -p "$cache/jars"
  for release in "${releases[@]}"; do
    jar=hudi-spark3.5-bundle_2.12-$release.jar
    if [ -s "$cache/jars/$jar" ]; then continue; fi
    need mvn maven
    say "fetching $jar"
    rm -rf "$cache/jars.part"
    mvn -q -B org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy \
      -Dartifact="org.apache.hudi:hudi-spark3.5-bundle_2.12:$release" -DoutputDirectory="$cache/jars.part" >&2 </dev/null ||
      fail "Maven could not fetch org.apache.hudi:hudi-spark3.5-bundle_2.12:$release"
    mv "$cache/jars.part/$jar" "$cache/jars/$jar"
    rm -rf "$cache/jars.part"
  done
}

# Azurite, Microsoft's emulator of Azure Storage.
pick_azurite() {
  local version=3.37.0
  azurite=$cache/azurite-$version/node_modules/.bin/azurite-blob
  if [ -e "$cache/azurite-$version/done" ]; then return; fi
  need npm nodejs npm
  say "fetching Azurite $version"
  rm -rf "$cache/azurite-$version"
  npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$cache/azurite-$version" "azurite@$version" >&2 </dev/null ||
    fail "npm could not install azurite@$version"
  touch "$cache/azurite-$version/done"
}

# The jars of interop/stores/MiniCluster.java, named after what it asks for.
pick_hadoop() {
  local sum
  sum=$(sha256sum <"$here/stores/pom.xml" | cut -c1-12)
  hadoop=$cache/hadoop-$sum
  if [ -e "$hadoop/done" ]; then return; fi
  need mvn maven
  say "fetching HDFS"
  rm -rf "$hadoop"
  mvn -q -B -f "$here/stores/pom.xml" org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies \
    -DoutputDirectory="$hadoop" >&2 </dev/null || fail "Maven could not fetch what $here/stores/pom.xml names"
  touch "$hadoop/done"
}

pick_java
pick_python
pick_jars
pick_azurite
pick_hadoop
spark_jars=$("$python" -c 'import os, pyspark; print(os.path.join(os.path.dirname(pyspark.__file__), "jars"))')

cat <<END
export JAVA_HOME='$JAVA_HOME'
export SLUICE_CACHE='$cache'
export SLUICE_INTEROP_PYTHON='$python'
export SLUICE_INTEROP_SPARK_JARS='$spark_jars'
export SLUICE_INTEROP_HUDI_JAR='$cache/jars/hudi-spark3.5-bundle_2.12-1.2.0.jar'
export SLUICE_INTEROP_AZURITE='$azurite'
export SLUICE_INTEROP_HADOOP_JARS='$hadoop'
export SLUICE_INTEROP_HUDI_JAR_0_15='$cache/jars/hudi-spark3.5-bundle_2.12-0.15.0.jar'
END
