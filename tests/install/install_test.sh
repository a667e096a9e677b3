#!/bin/sh
# Installs the build into an empty prefix, builds the consumer against it and runs it:
# install_test.sh CMAKE BUILD COMPILER BUILD_TYPE
#
# Expectation: the library in the consumer and the installed program are the same code, so both
# predict the same step time, to the last digit, from the same file.
set -eu

cmake=$1 build=$2 compiler=$3 build_type=$4
here=$(cd "$(dirname "$0")" && pwd)
work=$build/tests/install-test
prefix=$work/prefix

rm -rf "$work"
mkdir -p "$work"
"$cmake" --install "$build" --prefix "$prefix" >"$work/install.log"

# What shells and man read lies where they look.
for page in bash-completion/completions/shardsim zsh/site-functions/_shardsim \
  fish/vendor_completions.d/shardsim.fish man/man1/shardsim.1; do
  if ! grep -q rematerialization "$prefix/share/$page"; then
    echo "$page is not installed, or empty" >&2
    exit 1
  fi
done

repository=$(cd "$here/../.." && pwd)
if grep -rIF "$repository" "$prefix"/lib*/cmake "$prefix"/lib/*/cmake "$prefix/include" 2>/dev/null; then
  echo "the installed package points into the repository" >&2
  exit 1
fi

"$cmake" -S "$here/consumer" -B "$work/consumer" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" \
  -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_BUILD_TYPE="$build_type"
"$cmake" --build "$work/consumer"

experiment=$here/consumer/experiment.json
by_library=$("$work/consumer/consumer" "$experiment")
by_program=$("$prefix/bin/shardsim" run "$experiment" --format json |
  sed -n 's/^ *"step_time_s": \([0-9.e-]*\),$/\1/p')
echo "step time by the library: $by_library s, by the program: $by_program s"
[ -n "$by_library" ] && [ "$by_library" = "$by_program" ]
