#!/bin/sh
# Configures (once) and builds a preset of CMakePresets.json: scripts/build.sh PRESET [ARGUMENT...]
# Further arguments go to `cmake --build`. A build for one target needs no test packages. With
# SHARDSIM_WERROR=ON in the environment warnings are errors; SHARDSIM_TEST_LABELS, words, says which
# tests are built (all).
set -eu
cd "$(dirname "$0")/.."

preset=${1:?"usage: $0 PRESET [ARGUMENT...]"}
shift

if command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER="${CMAKE_CXX_COMPILER_LAUNCHER-ccache}"
  export CCACHE_BASEDIR="${CCACHE_BASEDIR-$PWD}"  # one checkout's results serve the next
fi

case "$*" in
  *--target*)
    [ -f "build/$preset/build.ninja" ] || cmake --preset "$preset" -DSHARDSIM_TESTS=OFF
    ;;
  *)
    # The preset turns the tests on, also where an earlier build for one target left them out.
    cmake --preset "$preset" ${SHARDSIM_WERROR:+-DSHARDSIM_WERROR="$SHARDSIM_WERROR"} \
      -DSHARDSIM_TEST_LABELS="$(echo "${SHARDSIM_TEST_LABELS:-}" | tr ' ' ';')"
    ;;
esac
exec cmake --build --preset "$preset" "$@"
