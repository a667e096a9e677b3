#!/bin/sh
# Runs clang-tidy (.clang-tidy, warnings are errors) over rooms and programs: scripts/lint.sh [BUILD]
#
# BUILD is a build folder, build/release by default, where sources are compiled many at a time
# (SHARDSIM_UNITY): their headers are looked at once, which takes a fourth of the time. What passed
# is not looked at again until it, a header of the repository, the compile commands or .clang-tidy
# change: its hash is kept in BUILD/lint. Tests are left out: Catch2's macros are not ours to mend.
# Exit code 77, which ctest reports as skipped, when clang-tidy is missing.
set -eu
cd "$(dirname "$0")/.."

build=${1:-build/release}
database=$build/compile_commands.json
if ! [ -f "$database" ]; then
  echo "$0: no $database, build first: scripts/build.sh release" >&2
  exit 2
fi

for tidy in clang-tidy-14 clang-tidy ''; do
  [ -n "$tidy" ] || break
  command -v "$tidy" >/dev/null && break
done
if [ -z "$tidy" ]; then
  echo "$0: clang-tidy is not installed" >&2
  exit 77
fi

mkdir -p "$build/lint"
rooms=$(sed -n 's/^add_subdirectory(\(.*\))$/\1/p' CMakeLists.txt | grep -v '^tests$')
# shellcheck disable=SC2086  # one folder a word
common=$(find $rooms -name '*.hpp' | sort | xargs cat .clang-tidy "$database" | sha256sum)
export build tidy common

# Every file of ours that is compiled, or that a unity build makes of ours: the sources that it
# includes make the hash then. Prints nothing for a file that passes. Compiler chatter about suppressed
# warnings is on stderr.
# shellcheck disable=SC2016
sed -n 's/^ *"file": "\(.*\)",\{0,1\}$/\1/p' "$database" |
  awk -v ours="$PWD/" -v made="$(cd "$build" && pwd)/" \
    'index($0, ours "tests/") != 1 && index($0, made "tests/") != 1 &&
     (index($0, made) != 1 || /\/Unity\//)' | sort |
  xargs -P "$(nproc)" -n 1 sh -c '
  stamp=$build/lint/$(echo "$1" | tr / _)
  sources=$(sed -n "s/^#include \"\(.*\.cpp\)\"$/\1/p" "$1")
  hash=$(echo "$common" | cat - "$1" $sources | sha256sum)
  [ "$(cat "$stamp" 2>/dev/null)" = "$hash" ] && exit 0
  chatter=$("$tidy" --quiet --extra-arg=-Wno-unknown-warning-option -p "$build" "$1" 2>&1) ||
    { echo "$chatter"; exit 1; }
  echo "$hash" >"$stamp"
' lint
