#!/bin/sh
# Builds and runs every test: scripts/test.sh [PRESET...]
#
# Without arguments each test runs once: what tests single parts under the address and
# undefined-behaviour sanitizers, what tests the whole, against data of others and as it is installed,
# in the release preset, and the mistakes that users make in both. clang-tidy is left
# to scripts/lint.sh. With presets, all tests of each.
set -eu
cd "$(dirname "$0")/.."

of_parts='unit property analytic error'
of_the_whole='golden laws cli error install lint browser mpi oracle performance'

run() { # PRESET LABEL...
  preset=$1
  shift
  case $preset in
    fuzz) scripts/setup.sh develop ;;
    *) scripts/setup.sh test ;;
  esac
  SHARDSIM_WERROR=ON SHARDSIM_TEST_LABELS="$*" scripts/build.sh "$preset"
  # As a regular expression; "." is any label, and none.
  labels=$(echo "$*" | tr ' ' '|')
  ctest --preset "$preset" ${labels:+--label-regex "^($labels)\$"}
}

if [ $# -eq 0 ]; then
  # shellcheck disable=SC2086  # words, on purpose
  run release $of_the_whole
  # shellcheck disable=SC2086
  run asan-ubsan $of_parts
  exit
fi
for preset in "$@"; do run "$preset"; done
