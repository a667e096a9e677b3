#!/bin/sh
# Runs a test script with the Python that has the real libraries: run_oracle.sh SCRIPT [ARGUMENT...]
# Exit code 77, which ctest reports as skipped, when there is none.
set -eu
python=$("$(dirname "$0")/../../scripts/setup_oracles.sh" --python)
exec "$python" "$@"
