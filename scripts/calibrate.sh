#!/bin/sh
# Makes the shipped calibrations anew from tests/measurements: scripts/calibrate.sh [--check] [BUILD]
#
# BUILD is a build folder, build/release by default. With --check nothing is written and a
# difference is an error. The program holds the calibrations that it was built with: build it again
# afterwards.
set -eu
cd "$(dirname "$0")/.."

check=
if [ "${1:-}" = --check ]; then
  check=1
  shift
fi
build=$(cd "${1:-build/release}" && pwd)

fresh=$(mktemp)
trap 'rm -f "$fresh"' EXIT
for file in hardware_profiles/calibrations/*.json; do
  "$build/shardsim" calibrate --refit "$(basename "$file" .json)" --format json \
    tests/measurements/collectives/*.json >"$fresh"
  if [ "$check" ]; then
    diff -u "$file" "$fresh"
  else
    cat "$fresh" >"$file"
  fi
done
