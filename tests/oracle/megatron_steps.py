"""Steps of Megatron-Core beside the plans of the same experiments, by megatron_golden_test.

    megatron_steps.py MEGATRON_GOLDEN_TEST [--only TEXT] [--keep FOLDER]

Each case of megatron_cases.py becomes a record (megatron_worker.py: what one rank sends in a training
step, without devices), and megatron_golden_test compares the records with our plans as it does those of
tests/golden/megatron: calls in order with groups and bytes, buckets, bytes held, and the peak.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import megatron_cases

WORKER = pathlib.Path(__file__).with_name("megatron_worker.py")


def record(case, folder):
    """Null, or why there is none."""
    stem = folder / (case["id"][:2] + ".json")
    given = folder / (case["id"][:2] + ".case")
    given.write_text(json.dumps(case))
    done = subprocess.run([sys.executable, "-W", "ignore", WORKER, given, stem],
                          capture_output=True, text=True)
    return None if done.returncode == 0 else done.stderr.strip().splitlines()[-1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("golden_test")
    parser.add_argument("--only", default="")
    parser.add_argument("--keep")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        root = pathlib.Path(options.keep or temporary)
        folder = root / "megatron"
        folder.mkdir(parents=True, exist_ok=True)
        wanted = [case for case in megatron_cases.cases() if options.only in case["id"]]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            failures = list(pool.map(lambda case: record(case, folder), wanted))
        for case, failure in zip(wanted, failures):
            if failure:
                print(f"Megatron-Core does not run {case['id']}: {failure}")
        if any(failures):
            return 1
        environment = {**os.environ, "SHARDSIM_GOLDEN_DIR": str(root)}
        return subprocess.run([options.golden_test], env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
