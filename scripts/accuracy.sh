#!/bin/sh
# Writes docs/xla-agreement.md and docs/accuracy-memory.md, which put our answers beside those of
# XLA's compilers for every program of tests/golden, and docs/accuracy-collectives.md, which puts
# them beside the tables of tests/measurements, docs/calibration-health.md, which says which of
# those are of machines that are not well, and docs/calibration-parameters.md, what was made of the
# others, and docs/calibration-kernels.md, the same of kernels:
# scripts/accuracy.sh [--check] [BUILD]
#
# BUILD is a build folder, build/release by default. With --check nothing is written and a
# difference is an error. SHARDSIM_GOLDEN_DIR names another set of the same form; of that one the
# documents go to standard output.
set -eu
cd "$(dirname "$0")/.."

check=
if [ "${1:-}" = --check ]; then
  check=1
  shift
fi
build=$(cd "${1:-build/release}" && pwd)
if [ ! "$check" ] && [ "${SHARDSIM_GOLDEN_DIR:-}" ]; then
  "$build/tests/xla_agreement"
  "$build/tests/accuracy_memory"
  exit
fi
[ ! "$check" ] || unset SHARDSIM_GOLDEN_DIR

fresh=$(mktemp)
trap 'rm -f "$fresh"' EXIT
for document in xla-agreement:xla_agreement accuracy-memory:accuracy_memory \
  accuracy-collectives:accuracy_collectives \
  calibration-health:calibration_health \
  calibration-kernels:calibration_kernels \
  calibration-parameters:calibration_parameters; do
  file=docs/${document%:*}.md
  "$build/tests/${document#*:}" >"$fresh"
  if [ "$check" ]; then
    diff -u "$file" "$fresh"
  else
    cat "$fresh" >"$file"
  fi
done
