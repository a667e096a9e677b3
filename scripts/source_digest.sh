#!/bin/sh
# Prints a digest of the sources that this script lies in, whatever they were fetched with (an
# action has no .git), and of the system, whose libraries a program built of them is linked with.
set -eu
export LC_ALL=C
cd "$(dirname "$0")/.."
{
  [ ! -f /etc/os-release ] || grep -E '^(ID|VERSION_ID)=' /etc/os-release || true
  find . \( -path ./build -o -path ./.git \) -prune -o -type f -print0 |
    sort -z | xargs -0 sha256sum
} | sha256sum | cut -c 1-32
