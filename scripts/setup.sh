#!/bin/sh
# Installs what shardsim needs from Debian's packages, asking nothing; does nothing when all is
# there already.
#
#   scripts/setup.sh build    to build the program and the library
#   scripts/setup.sh test     also to build and run every test, the linters included
#   scripts/setup.sh develop  also for the fuzzers and the benchmarks
#
# SHARDSIM_NO_SETUP=1 skips it, for systems whose packages have other names.
set -eu

build_packages='cmake ninja-build g++ pkg-config
  libboost-program-options-dev libeigen3-dev nlohmann-json3-dev libfmt-dev libpcre2-dev zlib1g-dev
  libtomlplusplus-dev libyaml-cpp-dev libjs-chart.js libprotozero-dev libopenmpi-dev openmpi-bin'
test_packages='ccache catch2 librapidcheck-dev clang-format-14 clang-tidy-14 chromium
  iproute2 lld'
develop_packages='clang-14 libclang-rt-14-dev libbenchmark-dev valgrind'

case "${1:-}" in
  build) wanted=$build_packages ;;
  test) wanted="$build_packages $test_packages" ;;
  develop) wanted="$build_packages $test_packages $develop_packages" ;;
  *)
    echo "usage: $0 build|test|develop" >&2
    exit 2
    ;;
esac

[ "${SHARDSIM_NO_SETUP:-0}" = 1 ] && exit 0

if ! command -v apt-get >/dev/null; then
  echo "$0: no apt-get here; install the equivalents of these, then set SHARDSIM_NO_SETUP=1:" >&2
  echo "$wanted" >&2
  exit 4
fi

missing=
for package in $wanted; do
  status=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

as_root=
[ "$(id -u)" = 0 ] || as_root=sudo
echo "$0: installing$missing" >&2
# Results belong on stdout, so apt-get talks on stderr.
$as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q >&2
# shellcheck disable=SC2086  # words, on purpose
$as_root env DEBIAN_FRONTEND=noninteractive \
  apt-get install -q -y --no-install-recommends $missing >&2
