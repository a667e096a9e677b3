#!/bin/sh
# From a fresh checkout to a first report: installs what is missing, builds the release preset and
# compares four ways of sharding Llama-3.1-8B over eight H100, leaving report.html and report.csv.
set -eu
cd "$(dirname "$0")/.."

scripts/setup.sh build
# The build talks on stderr: stdout is the comparison alone.
scripts/build.sh release --target shardsim >&2
exec build/release/shardsim compare examples/llama-3.1-8b-8xh100.json -o report.html -o report.csv
