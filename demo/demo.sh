#!/usr/bin/env bash
# The walk that `make demo` takes: the quickstart table of Apache Hudi (merge on read: 8 trips inserted, then updates
# and deletes, some of them in log files), read as it stands and exported whole. Nothing but Go and the program that was just built.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
table=$work/trips

# run COMMAND...: shows a command as a person would type it, then runs it.
run() {
  echo
  echo "\$ ${*//$work\//}"
  (cd "$work" && PATH=$OLDPWD/bin:$PATH "$@")
}

"${GO:-go}" run ./internal/fixture/unpack testdata/public/quickstart_trips_table_mor_avro_v8_trips_8i3u1d.tar.zst "$table"

run sluice table show trips
run sluice read trips --no-meta -o table
echo
echo "The same rows, in the formats that others read:"
for format in parquet orc json csv; do
  run sluice export --source-base-path trips --target-output-path "out-$format" --output-format "$format" --query-type snapshot
  (cd "$work" && find "out-$format" -type f | sort | sed 's/^/  /')
done
echo
echo "And the read-optimized view, which leaves log files out: rider-G still pays the fare from before the update."
run sluice read trips --query-type read_optimized --no-meta -o json
