#!/bin/sh
# Formats every C++ file of the repository in place; with --check only says which need it. Both
# fail where a comment is longer than a line: clang-format leaves comments as they are.
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

sources() {
  find . \( -path ./build -o -path ./.git \) -prune -o \( -name '*.cpp' -o -name '*.hpp' \) -print |
    sort
}

sources | xargs "$formatter" --style=file "$@"
if sources | LC_ALL=C.UTF-8 xargs grep -nE '^.{101,}$' | grep -E '^[^:]*:[0-9]+:[^"]*//'; then
  echo "$0: comments of more than 100 characters" >&2
  exit 1
fi
