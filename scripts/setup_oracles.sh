#!/bin/sh
# Makes the Python environment of the tests labelled `oracle`: the real JAX, flax, PyTorch and
# safetensors (tests/tools/requirements.txt) in a virtual environment, and beside it the source of the
# rule systems that PyPI has (tests/tools/upstream.txt), each in a folder of its own, to be read by
# tests/oracle/upstream.py; does nothing when they are there already. Without them those tests are
# skipped.
#
#   scripts/setup_oracles.sh            installs
#   scripts/setup_oracles.sh --python   prints the environment's Python; exit code 77 and the reason
#                                       when it is missing or older than requirements.txt
#
# The environment lies in ~/.cache/shardsim/oracles, for all checkouts, or in $SHARDSIM_ORACLES.
# It takes 6 GB: PyPI's torch for Linux brings CUDA along. Where PyTorch's own index of CPU builds can
# be reached, PIP_EXTRA_INDEX_URL with its address makes pip take the CPU build instead.
set -eu
cd "$(dirname "$0")/.."

requirements=tests/tools/requirements.txt
environment=${SHARDSIM_ORACLES:-${XDG_CACHE_HOME:-$HOME/.cache}/shardsim/oracles}
stamp=$environment/requirements.txt  # written last: a copy of what was installed

if [ "${1:-}" = --python ]; then
  if cmp -s "$requirements" "$stamp"; then
    echo "$environment/bin/python"
    exit 0
  fi
  echo "skipped: no environment with the libraries of $requirements in $environment;" \
    "scripts/setup_oracles.sh makes it" >&2
  exit 77
elif [ $# -gt 0 ]; then
  echo "usage: $0 [--python]" >&2
  exit 2
fi

pip() {
  "$environment/bin/pip" --quiet --disable-pip-version-check "$@"
}

if ! cmp -s "$requirements" "$stamp"; then
  rm -f "$stamp"
  python3 -m venv --clear "$environment"
  DS_BUILD_OPS=0 pip install --requirement "$requirements"
  cp "$requirements" "$stamp"
fi

sources=tests/tools/upstream.txt
if ! cmp -s "$sources" "$environment/upstream.txt"; then
  rm -rf "$environment/upstream" "$environment/upstream.txt"
  grep -v '^#' "$sources" | while read -r pin; do
    pip install --no-deps --target "$environment/upstream/$pin" "$pin"
  done
  cp "$sources" "$environment/upstream.txt"
fi
