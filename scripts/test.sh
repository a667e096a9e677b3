#!/bin/sh
# Builds and runs every test: scripts/test.sh [PRESET...]
#
# Without arguments: the release preset with all tests (format, lint and install included), then
# the tests again under the address and undefined-behaviour sanitizers.
set -eu
cd "$(dirname "$0")/.."

[ $# -gt 0 ] || set -- release asan-ubsan

for preset in "$@"; do
  case $preset in
    fuzz) scripts/setup.sh develop ;;
    *) scripts/setup.sh test ;;
  esac
  SHARDSIM_WERROR=ON scripts/build.sh "$preset"
  ctest --preset "$preset"
done
