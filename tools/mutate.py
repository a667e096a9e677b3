#!/usr/bin/env python3
"""Do the tests notice bugs? Makes many small bugs, one at a time, and runs the tests of their room.

    tools/mutate.py --samples 200

A mutant is one change in one place: a comparison (< to <=, == to !=, && to ||), an operator of
arithmetic (+ to -, * to /), a constant (n to n + 1), or a statement that is left out. They are
drawn from the .cpp files of the rooms, evenly over rooms and kinds, the same for the same seed and
sources.

All are written into a copy of the tree at once, each as a choice that an environment variable makes
(tools/mutants.py), so that one build is enough; --build holds the copy and its build. Of a room's
tests those labelled unit, property, analytic, golden or error run for each mutant, the fastest
first, until one fails.

    killed      a test failed, crashed or took ten times as long as it should, and ten seconds
    survived    none did: write a test, or add the mutant to tools/equivalent_mutants.json with
                the reason why nothing can notice it
    equivalent  listed there
    invalid     the compiler refuses it; another is taken in its place (of a room a third more
                than wanted are drawn)

Not expressed: what has to be known when compiling (constexpr, template arguments, cases of a
switch, sizes of arrays), headers, declarations and returns left out, macros, asserts, strings, and a
second mutant in the same line.

Results are lines of JSON, appended as they come; what is there is not run again, so that a stopped
run goes on. After a change of tests, --again runs the survivors. Needs Python 3.9 and ninja.
"""

import argparse
import collections
import dataclasses
import itertools
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import time

import mutants

ROOT = pathlib.Path(__file__).resolve().parent.parent
EQUIVALENT = ROOT / "tools" / "equivalent_mutants.json"
CORE_ROOMS = ["plan", "strategies", "spmd", "sim", "hardware_profiles", "reports"]
LABELS = {"unit", "property", "analytic", "golden", "error"}
MOST_MEMORY = 8 << 30
FLAGS = "-O1 -DNDEBUG"  # Compiles nearly as fast as -O0; the golden tests take a fraction.


@dataclasses.dataclass
class Test:
    name: str
    folder: str
    environment: dict
    seconds: float = 0.0


class Build:
    """A copy of the tree with choices in it, and its build."""

    def __init__(self, folder, jobs):
        self.tree = folder / "tree"
        self.folder = folder / "build"
        self.header = folder / "mutant.hpp"
        self.jobs = jobs

    def write(self, chosen):
        """The copy, with mutants {number: mutant}; what stays the same is not compiled again."""
        by_file = collections.defaultdict(dict)
        for number, mutant in chosen.items():
            by_file[mutant.file][number] = mutant
        names = subprocess.run(["git", "ls-files", "-z", "--cached", "--others",
                                "--exclude-standard"],
                               cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE).stdout
        for name in names.split("\0"):
            if not (ROOT / name).is_file():
                continue
            content = (ROOT / name).read_bytes()
            if name in by_file:
                content = mutants.with_choices(content.decode(), by_file[name]).encode()
            write_if_changed(self.tree / name, content)
            (self.tree / name).chmod((ROOT / name).stat().st_mode)
        write_if_changed(self.header, mutants.HEADER.encode())

    def configure(self):
        subprocess.run(["cmake", "-S", self.tree, "-B", self.folder, "-G", "Ninja",
                        "-DSHARDSIM_UNITY=ON", "-DSHARDSIM_TESTS=ON", "-DCMAKE_BUILD_TYPE=None",
                        f"-DCMAKE_CXX_FLAGS={FLAGS} -include {self.header}"],
                       check=True, stdout=subprocess.DEVNULL)

    def tests_of(self, room):
        known = subprocess.run(["ctest", "--show-only=json-v1"], cwd=self.folder / "tests" / room,
                               check=True, text=True, stdout=subprocess.PIPE).stdout
        for test in json.loads(known)["tests"]:
            properties = {p["name"]: p["value"] for p in test["properties"]}
            if LABELS & set(properties.get("LABELS", [])):
                environment = dict(v.split("=", 1) for v in properties.get("ENVIRONMENT", []))
                yield Test(test["name"], properties["WORKING_DIRECTORY"], environment)

    def refused(self, tests, chosen):
        """Builds; the numbers of the mutants that the compiler refuses."""
        result = subprocess.run(["ninja", "-k", "0", "-j", str(self.jobs),
                                 *(test.name for test in tests)],
                                cwd=self.folder, text=True, check=False,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if result.returncode == 0:
            return []
        errors = places(result.stdout, r": (?:fatal )?error: ", self.tree)
        # Errors in templates are elsewhere, "required from" where they come from.
        for where in (errors, places(result.stdout, r": ", self.tree)):
            if bad := [number for number, mutant in chosen.items() if any(
                    (mutant.file, line) in where
                    for line in range(mutant.line, mutant.last_line + 1))]:
                return bad
        # What is not declared is declared by a statement before, left out.
        before = [max(((mutant.line, number) for number, mutant in chosen.items()
                       if (mutant.file, mutant.kind) == (file, "statement") and mutant.line < line),
                      default=None) for file, line in errors]
        if bad := {found[1] for found in before if found}:
            return bad
        sys.exit(result.stdout + "\nmutate: what the compiler refuses is no mutant")

    def passes(self, test, number, limit):
        def limit_memory():
            resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        try:
            result = subprocess.run(
                [self.folder / "tests" / test.name, "--abort"], cwd=test.folder, timeout=limit,
                # The same cases of properties for every mutant.
                env={**os.environ, "RC_PARAMS": "seed=1", **test.environment,
                     "SHARDSIM_MUTANT": str(number)},
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=limit_memory,
                check=False)
        except subprocess.TimeoutExpired:
            return False
        return result.returncode == 0


def write_if_changed(path, content):
    if not path.exists() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def places(output, what, tree):
    """The (file, line) of the tree that the compiler names."""
    found = re.findall(rf"{re.escape(str(tree))}/(\S+?):(\d+):\d+{what}", output)
    return {(name, int(line)) for name, line in found}


class Results:
    def __init__(self, path):
        self.path = path
        self.entries = {}
        if path.exists():
            for line in path.read_text().splitlines():
                entry = json.loads(line)
                self.entries[self.key(entry)] = entry
        self.equivalent = {}
        if EQUIVALENT.exists():
            self.equivalent = {self.key(e): e["why"] for e in json.loads(EQUIVALENT.read_text())}

    @staticmethod
    def key(entry):
        return (entry["file"], entry["before"].strip(), entry["after"].strip())

    def verdict(self, mutant):
        if mutant.key() in self.equivalent:
            return "equivalent"
        return self.entries.get(mutant.key(), {}).get("verdict")

    def add(self, number, mutant, verdict, **more):
        entry = {"number": number, "file": mutant.file, "line": mutant.line, "kind": mutant.kind,
                 "before": mutant.before, "after": mutant.after, "verdict": verdict, **more}
        self.entries[mutant.key()] = entry
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps(entry) + "\n")


def shares(rooms, samples):
    return {room: samples // len(rooms) + (i < samples % len(rooms))
            for i, room in enumerate(rooms)}


def draw(room, first_number, count, seed):
    """{number: mutant}"""
    sources = {str(path.relative_to(ROOT)): path.read_text()
               for path in (ROOT / room).rglob("*.cpp")}
    numbered = enumerate(mutants.drawn(sources, f"{seed} {room}"), first_number)
    return dict(itertools.islice(numbered, count))


def measure(build, tests):
    """How long they take as they are, the fastest first; a test that fails unchanged says nothing
    of a change."""
    for test in tests:
        begin = time.monotonic()
        if not build.passes(test, 0, 1800):
            sys.exit(f"mutate: {test.name} fails without a mutant")
        test.seconds = time.monotonic() - begin
    return sorted(tests, key=lambda test: test.seconds)


def run_mutant(build, number, mutant, tests, results):
    begin = time.monotonic()
    by = next((test.name for test in tests
               if not build.passes(test, number, max(10.0, 10 * test.seconds))), None)
    verdict = "killed" if by else "survived"
    seconds = round(time.monotonic() - begin, 1)
    results.add(number, mutant, verdict, by=by, seconds=seconds)
    print(f"{verdict:10} {seconds:6.1f} s  {number}  {mutant.file}:{mutant.line}  "
          f"{on_one_line(mutant.before)}  ->  {on_one_line(mutant.after) or '(nothing)'}",
          file=sys.stderr, flush=True)


def on_one_line(text):
    return re.sub(r"\s+", " ", text).strip()[:60]


def summarize(drawn, results):
    print(f"{'room':18} {'mutants':>7} {'equivalent':>10} {'killed':>6} {'survived':>8} {'rate':>7}")
    total = collections.Counter()
    for room in [*drawn, "together"]:
        count = collections.Counter(map(results.verdict, drawn.get(room, {}).values())) or total
        total = total + count if room in drawn else total
        tried = count["killed"] + count["survived"]
        rate = f"{count['killed'] / tried:7.1%}" if tried else "      -"
        print(f"{room:18} {tried + count['equivalent']:7} {count['equivalent']:10} "
              f"{count['killed']:6} {count['survived']:8} {rate}")
    for chosen in drawn.values():
        for number, mutant in chosen.items():
            if results.verdict(mutant) == "survived":
                print(f"\n{number} {mutant.file}:{mutant.line}: survived"
                      f"\n- {mutant.before.strip()}\n+ {mutant.after.strip()}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rooms", default=",".join(CORE_ROOMS), metavar="ROOM,...")
    parser.add_argument("--samples", type=int, default=200, metavar="N", help="of all rooms")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N", help="to build")
    parser.add_argument("--build", default=ROOT / "build/mutants", type=pathlib.Path)
    parser.add_argument("--results", type=pathlib.Path, metavar="FILE.jsonl",
                        help="BUILD/mutants.jsonl unless given")
    parser.add_argument("--again", action="store_true", help="try survivors of earlier runs again")
    options = parser.parse_args()
    rooms = options.rooms.split(",")
    for room in rooms:
        if not (ROOT / room).is_dir():
            sys.exit(f"mutate: there is no room {room}")
    folder = options.build.resolve()
    build = Build(folder, options.jobs)
    results = Results(options.results or folder / "mutants.jsonl")

    drawn = {}
    for i, (room, share) in enumerate(shares(rooms, options.samples).items(), 1):
        drawn[room] = draw(room, 10000 * i, share + share // 3 + 1, options.seed)
    chosen = {n: m for of_room in drawn.values() for n, m in of_room.items()
              if results.verdict(m) != "invalid"}
    build.write(chosen)
    build.configure()
    tests = {room: list(build.tests_of(room)) for room in rooms}
    while bad := build.refused([test for room in rooms for test in tests[room]], chosen):
        for number in bad:
            results.add(number, chosen.pop(number), "invalid")
        print(f"mutate: {len(bad)} refused", file=sys.stderr, flush=True)
        build.write(chosen)

    for room, share in shares(rooms, options.samples).items():
        valid = [(n, m) for n, m in drawn[room].items() if n in chosen]
        drawn[room] = dict(valid[:share])
        wanted = {None, "survived"} if options.again else {None}
        left = {n: m for n, m in drawn[room].items() if results.verdict(m) in wanted}
        timed = measure(build, tests[room]) if left else []
        for number, mutant in left.items():
            run_mutant(build, number, mutant, timed, results)
    summarize(drawn, results)


if __name__ == "__main__":
    main()
