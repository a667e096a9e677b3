#!/bin/sh
# Runs the commands in README.md's console blocks and puts their output below them, so that what is
# printed there is what the program prints: scripts/readme.sh [--check] [BUILD]
#
# BUILD is a build folder, build/release by default. With --check nothing is written and a
# difference is an error.
set -eu
cd "$(dirname "$0")/.."

check=
if [ "${1:-}" = --check ]; then
  check=1
  shift
fi
build=$(cd "${1:-build/release}" && pwd)
PATH=$build:$PATH
COLUMNS=120
export PATH COLUMNS

fresh=$(mktemp)
trap 'rm -f "$fresh"' EXIT
awk '
  /^```console$/ { print; in_block = 1; next }
  /^```$/        { in_block = 0 }
  !in_block      { print; next }
  /^\$ / {
    print
    command = substr($0, 3)
    while (command ~ /\\$/ && (getline > 0)) {
      print
      command = substr(command, 1, length(command) - 1) $0
    }
    command = "( " command " ) 2>&1"
    while ((command | getline line) > 0) print line
    close(command)
  }' README.md >"$fresh"

if [ "$check" ]; then
  diff -u README.md "$fresh"
else
  cat "$fresh" >README.md
fi
