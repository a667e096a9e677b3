"""Steps of a real framework beside the plans of the same experiments, by the test that compares
records: each case becomes a record (a worker: what one rank sends in a training step, without
devices), and the golden test compares the records with our plans as it does those of tests/golden."""

import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import traceback


def record_each(run):
    """WORKER CASE.json RECORD.json ...: each case in a process of its own; 1 if any failed."""
    failed = False
    for case_path, record_path in zip(sys.argv[1::2], sys.argv[2::2]):
        child = os.fork()
        if child == 0:
            with open(case_path) as file:
                case = json.load(file)
            try:
                made = run(case)
            except BaseException:
                print(case["id"], file=sys.stderr)
                traceback.print_exc()
                os._exit(1)
            with open(record_path, "w") as file:
                json.dump(made, file)
            os._exit(0)
        failed |= os.waitpid(child, 0)[1] != 0
    return int(failed)


def record(worker, cases, folder):
    """Why there are none, or nothing."""
    paths = []
    for case in cases:
        given = folder / (case["id"].split()[0] + ".case")
        given.write_text(json.dumps(case))
        paths += [given, given.with_suffix(".json")]
    done = subprocess.run([sys.executable, "-W", "ignore",
                           pathlib.Path(__file__).with_name(worker), *paths],
                          capture_output=True, text=True)
    return done.stderr if done.returncode else ""


def compare(description, worker, folder, cases, draw=None):
    """`folder`: where the golden test looks for records of the kind. `draw`: a case by a seed and a
    number; what the framework refuses of those is said, and left out."""
    parser = argparse.ArgumentParser(description=description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("golden_test")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--keep", metavar="FOLDER", help="for the records")
    if draw:
        parser.add_argument("--draw", type=int, metavar="COUNT", help="so many at random, in place of "
                            "the cases")
        parser.add_argument("--first", type=int, default=0, help="number of the first drawn")
        parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    draws = draw and options.draw
    if draws:
        cases = [draw(options.seed, n) for n in range(options.first, options.first + draws)]
    with tempfile.TemporaryDirectory() as temporary:
        root = pathlib.Path(options.keep or temporary)
        records = root / folder
        records.mkdir(parents=True, exist_ok=True)
        wanted = [case for case in cases if options.only in case["id"]]
        shares = [wanted[i::os.cpu_count()] for i in range(os.cpu_count())]
        with concurrent.futures.ThreadPoolExecutor() as pool:
            failures = list(pool.map(lambda share: record(worker, share, records), shares))
        if any(failures):
            print("It does not run them all:", *failures, sep="\n")
            if not draws:
                return 1
        environment = {**os.environ, "SHARDSIM_GOLDEN_DIR": str(root)}
        return subprocess.run([options.golden_test], env=environment).returncode
