"""The rule systems' own Python beside shardsim, on random meshes, trees and rules.

    rule_systems.py SHARDSIM SYSTEM [--count 1000] [--seed 1] [--only NUMBER]

A case is one experiment: shardsim answers it as a user asks, in JSON, and upstream's functions (where
they come from: upstream.py) answer it with what JAX makes of their specs. Both give the same, to the
letter of the spec that the function returns, or both refuse it, with the same kind of exception. Every
difference is printed, as the files that shows it. Exit code 1 for any, 77 where upstream is not there.
"""

import argparse
import collections
import importlib
import json
import os
import random
import re
import subprocess
import sys
import tempfile

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=64"
os.environ["JAX_PLATFORMS"] = "cpu"

from absl import logging

import upstream

MODULES = {
    "big_vision": "big_vision",
    "match_partition_rules": "eformer", "partition_manager": "eformer", "eformer_pattern": "eformer",
    "auto_partition_spec": "eformer", "analyze_sharding_strategy": "eformer",
    "praxis": "praxis", "praxis_inputs": "praxis",
    "pathways": "pathways",
    "fsdp_tutorial": "fsdp_tutorial",
}

# What shardsim says in place of an exception of the original, documented in docs/rule-systems.
ALSO = {"IndivisibleError": "ValueError"}


class Refused(Exception):
    """shardsim's exit code 3."""

    def __init__(self, message):
        super().__init__(message)
        found = re.search(r"\((?:re\.)?(\w+) in the original\)\s*$", message)
        self.kind = found.group(1) if found else None


class Shardsim:
    def __init__(self, binary, folder):
        self.binary = binary
        self.folder = folder

    def write(self, name, document):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(document, file)
        return path

    def ask(self, *arguments):
        done = subprocess.run([self.binary, *arguments, "--format", "json"], capture_output=True,
                              text=True, cwd=self.folder, check=False)
        if done.returncode == 3:
            raise Refused(done.stderr.strip())
        if done.returncode != 0:
            raise AssertionError(f"exit code {done.returncode}: {done.stderr}")
        return json.loads(done.stdout)

    def specs(self, case):
        """The answer of `shardsim specs`, of what upstream's functions decide on."""
        self.write("tree.json", case["tree"])
        experiment = self.write("experiment.json", {
            "workload": {"tree": "tree.json"}, "mesh": case["mesh"], "strategy": case["strategy"]})
        flags = ["--allow-uneven"] if case["uneven"] else []
        return self.ask("specs", experiment, *flags, *case.get("flags", []))


def returned_specs(shardsim, case):
    answer = shardsim.specs(case)
    return {leaf["name"]: leaf["returned_spec"] for leaf in answer["parameters"]}


def outcome(function):
    try:
        return function()
    except upstream.Missing:
        raise
    except AssertionError as error:
        if str(error).startswith("exit code"):
            raise
        return error
    except Exception as error:  # whatever upstream raises
        return error


def kinds(error):
    return {cls.__name__ for cls in type(error).__mro__[:-2]}


def difference(expected, actual):
    """None, or what differs."""
    raised = isinstance(expected, Exception)
    if raised != isinstance(actual, Exception):
        return f"upstream: {expected!r}\n  shardsim: {actual!r}"
    if not raised:
        if expected == actual:
            return None
        if isinstance(expected, dict) and expected.keys() == actual.keys():
            return "\n".join(f"{key}: upstream {expected[key]} shardsim {actual[key]}"
                             for key in expected if expected[key] != actual[key])
        return f"upstream {expected}\n  shardsim {actual}"
    if actual.kind in kinds(expected) or ALSO.get(actual.kind) in kinds(expected):
        return None
    return f"upstream: {expected!r}\n  shardsim: {actual}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("shardsim")
    parser.add_argument("system", choices=MODULES)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int)
    options = parser.parse_args()
    logging.set_verbosity(logging.FATAL)
    module = importlib.import_module("systems." + MODULES[options.system])
    try:
        system = module.SYSTEMS[options.system]()
    except upstream.Missing as reason:
        print(f"skipped: {reason}", file=sys.stderr)
        sys.exit(77)
    ask = getattr(system, "ask", returned_specs)
    tally = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        shardsim = Shardsim(os.path.abspath(options.shardsim), folder)
        numbers = range(options.count) if options.only is None else [options.only]
        for number in numbers:
            case, answer = system.case(random.Random(f"{options.seed} {number}"))
            expected = outcome(answer)
            actual = outcome(lambda: ask(shardsim, case))  # pylint: disable=cell-var-from-loop
            found = difference(expected, actual)
            tally["refused by both" if isinstance(expected, Exception) else "alike"] += not found
            tally["different"] += bool(found)
            if found:
                print(f"--only {number}\n  {found}\n  {json.dumps(case)}")
    print(f"{options.system}: " + ", ".join(f"{n} {what}" for what, n in tally.items()))
    sys.exit(1 if tally["different"] else 0)


if __name__ == "__main__":
    main()
