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


def record(cases, folder):
    """Why there are none, or nothing."""
    paths = []
    for case in cases:
        given = folder / (case["id"].split()[0] + ".case")
        given.write_text(json.dumps(case))
        paths += [given, given.with_suffix(".json")]
    done = subprocess.run([sys.executable, "-W", "ignore", WORKER, *paths],
                          capture_output=True, text=True)
    return done.stderr if done.returncode else ""


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
        shares = [wanted[i::os.cpu_count()] for i in range(os.cpu_count())]
        with concurrent.futures.ThreadPoolExecutor() as pool:
            failures = list(pool.map(lambda share: record(share, folder), shares))
        if any(failures):
            print("Megatron-Core does not run them all:", *failures, sep="\n")
            return 1
        environment = {**os.environ, "SHARDSIM_GOLDEN_DIR": str(root)}
        return subprocess.run([options.golden_test], env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
