#!/bin/sh
# Formats every C++ file of the repository in place; with --check only says which need it.
# Exit code 77, which ctest reports as skipped, when clang-format 14 is missing: another version
# would format differently.
set -eu
cd "$(dirname "$0")/.."

for formatter in clang-format-14 clang-format ''; do
  [ -n "$formatter" ] || break
  case "$($formatter --version 2>/dev/null)" in *' 14.'*) break ;; esac
done
if [ -z "$formatter" ]; then
  echo "$0: clang-format 14 is not installed" >&2
  exit 77
fi

case "${1:-}" in
  '') set -- -i ;;
  --check) set -- --dry-run --Werror ;;
  *)
    echo "usage: $0 [--check]" >&2
    exit 2
    ;;
esac

find . \( -path ./build -o -path ./.git \) -prune -o \( -name '*.cpp' -o -name '*.hpp' \) -print |
  sort | xargs "$formatter" --style=file "$@"
