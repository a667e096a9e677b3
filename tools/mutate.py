#!/usr/bin/env python3
"""Do the tests notice bugs? Makes one small bug at a time and runs the tests of its room.

    cmake --preset release -DSHARDSIM_UNITY=OFF -B build/mutate && cmake --build build/mutate
    tools/mutate.py --rooms plan,sim --samples 20

A mutant is one change of one line: a comparison (< to <=, == to !=, && to ||), an operator of
arithmetic (+ to -, * to /), a constant (n to n + 1), or a statement that is left out. Lines are
drawn from the .cpp files of a room, the same for the same seed and sources.

Neither the sources nor the build folder are touched: a changed copy of the file is compiled by the
build's own command, and linked before the room's library into copies of the room's test programs,
which run one after the other, the fastest first, until one fails.

    killed      a test failed, crashed or ran three times as long as it should
    survived    none did: write a test, or add the mutant to tools/equivalent_mutants.json with
                the reason why nothing can notice it
    equivalent  listed there, or the compiler makes the same code of it
    invalid     does not compile; another line is drawn in its place

Results are lines of JSON, appended as they come; what is there is not run again, so that a stopped
run goes on. Needs Python 3.9, ninja, and a build of static libraries without SHARDSIM_UNITY.
"""

import argparse
import collections
import dataclasses
import itertools
import json
import os
import pathlib
import random
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
EQUIVALENT = ROOT / "tools" / "equivalent_mutants.json"
CORE_ROOMS = ["plan", "strategies", "spmd", "sim", "hardware_profiles", "reports"]
# Tests that are about something else than what a room computes.
OTHER_LABELS = {"performance", "browser", "lint", "oracle"}
KINDS = ["comparison", "arithmetic", "constant", "statement"]
MOST_MEMORY = 8 << 30


# --- mutants ------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Mutant:
    file: str  # relative to the root
    line: int  # from 1
    kind: str
    before: str  # the line, or the lines of a statement
    after: str

    def key(self):
        """Holds as long as the line stays the same, wherever it moves to in the file."""
        return (self.file, self.before.strip(), self.after.strip())


SWAPS = {
    "comparison": {
        "==": ["!="], "!=": ["=="], "<": ["<=", ">="], "<=": ["<"], ">": [">=", "<="],
        ">=": [">"], "&&": ["||"], "||": ["&&"],
    },
    "arithmetic": {
        "+": ["-"], "-": ["+"], "*": ["/"], "/": ["*"], "%": ["*"],
        "+=": ["-="], "-=": ["+="], "*=": ["/="], "/=": ["*="],
    },
}
# clang-format puts spaces around binary operators and none into template arguments.
OPERATOR = re.compile(r"(?<= )(==|!=|<=|>=|&&|\|\||\+=|-=|\*=|/=|[-+*/%<>])(?= |$)")
CONSTANT = re.compile(r"(?<![\w.])(\d[\d']*)(\.\d+)?(e-?\d+)?(?![\w.'])|\b(true|false)\b")
KEYWORDS = r"(?:if|for|while|throw|break|continue|delete|do|switch)\b"
# What does not compile, or does nothing, without more ado.
NOT_A_STATEMENT = re.compile(
    r"(?:return|using|static|constexpr|const|struct|class|enum|case|default|public|private|friend|"
    r"namespace|template|typename|else|assert)\b|[}#]|\[\[|"
    # A declaration: two words, the second a name.
    rf"(?!{KEYWORDS})(?:[\w:]+(?:<.*>)?[&*]* )+\w+(?:;| =|\{{|\()")


def blanked(text):
    """The text with comments, strings and preprocessor lines as spaces: columns stay."""
    def spaces(match):
        return re.sub(r"[^\n]", " ", match.group())
    raw_string = r'R"(\w*)\((?:.|\n)*?\)\1"'
    token = re.compile(raw_string + r'|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])\''
                       r"|//[^\n]*|/\*(?:.|\n)*?\*/|^#(?:\\\n|[^\n])*", re.MULTILINE)
    return token.sub(spaces, text)


def of_operators(file, number, line, code):
    for match in OPERATOR.finditer(code):
        for kind, swaps in SWAPS.items():
            for other in swaps.get(match.group(), []):
                yield Mutant(file, number, kind, line,
                             line[:match.start()] + other + line[match.end():])


def of_constants(file, number, line, code):
    for match in CONSTANT.finditer(code):
        text = match.group()
        if text in ("true", "false"):
            others = ["false" if text == "true" else "true"]
        elif match.group(2) or match.group(3):
            others = [f"(2 * {text})"]
        else:
            value = int(text.replace("'", ""))
            others = [str(value + 1)] + ([str(value - 1)] if value > 0 else [])
        for other in others:
            yield Mutant(file, number, "constant", line,
                         line[:match.start()] + other + line[match.end():])


def of_statements(file, lines, codes):
    """Whole statements that stand in lines of their own, in functions."""
    previous = ";"
    for i, code in enumerate(codes):
        stripped = code.strip()
        if not stripped:
            continue
        begins = previous[-1] in ";{}:" and code.startswith("  ")
        previous = stripped
        if not begins or NOT_A_STATEMENT.match(stripped):
            continue
        statement = ""
        for j in range(i, min(i + 8, len(codes))):
            statement += codes[j]
            if statement.count("{") != statement.count("}") and ";" not in statement:
                break
            if statement.rstrip().endswith(";") and \
                    all(statement.count(a) == statement.count(b) for a, b in ("()", "{}", "[]")):
                yield Mutant(file, i + 1, "statement", "\n".join(lines[i:j + 1]), "")
                break


def mutants_of(file):
    """All there are of a file, by line."""
    text = (ROOT / file).read_text()
    lines, codes = text.split("\n"), blanked(text).split("\n")
    by_line = collections.defaultdict(list)
    for number, (line, code) in enumerate(zip(lines, codes), 1):
        if code.strip().startswith(("assert(", "static_assert(")):
            continue  # not in what is built
        for mutant in (*of_operators(file, number, line, code),
                       *of_constants(file, number, line, code)):
            by_line[number].append(mutant)
    for mutant in of_statements(file, lines, codes):
        by_line[mutant.line].append(mutant)
    return by_line


def drawn(room, seed):
    """Mutants of a room, each of another line, the kinds in turn."""
    dice = random.Random(f"{seed} {room}")
    of_kind = collections.defaultdict(list)
    for file in sorted(str(path.relative_to(ROOT)) for path in (ROOT / room).rglob("*.cpp")):
        for _, choices in sorted(mutants_of(file).items()):
            for kind in KINDS:
                if alike := [mutant for mutant in choices if mutant.kind == kind]:
                    of_kind[kind].append(dice.choice(alike))
    for mutants in of_kind.values():
        dice.shuffle(mutants)
    taken = set()
    for turn in itertools.zip_longest(*(of_kind[kind] for kind in KINDS)):
        for mutant in turn:
            if mutant is not None and (mutant.file, mutant.line) not in taken:
                taken.add((mutant.file, mutant.line))
                yield mutant


# --- build and tests ----------------------------------------------------------------------------


@dataclasses.dataclass
class Test:
    name: str
    program: str  # relative to the build folder
    arguments: list
    environment: dict
    link: str
    seconds: float = 0.0


class Build:
    def __init__(self, folder):
        self.folder = folder
        commands = folder / "compile_commands.json"
        if not commands.exists():
            sys.exit(f"mutate: {commands} is missing: configure a preset first")
        self.commands = {str(pathlib.Path(entry["file"]).relative_to(ROOT)): entry["command"]
                         for entry in json.loads(commands.read_text())
                         if pathlib.Path(entry["file"]).is_relative_to(ROOT)}

    def run(self, *command):
        return subprocess.run(command, cwd=self.folder, check=True, text=True,
                              stdout=subprocess.PIPE).stdout

    def tests_of(self, room):
        """The programs that tests/ROOM builds, as ctest runs them."""
        known = json.loads(self.run("ctest", "--show-only=json-v1"))["tests"]
        tests = []
        for test in known:
            properties = {p["name"]: p["value"] for p in test.get("properties", [])}
            command = test.get("command", [])
            if not command or OTHER_LABELS & set(properties.get("LABELS", [])):
                continue
            program = os.path.relpath(command[0], self.folder)
            if not program.startswith("tests/"):
                continue
            link = self.run("ninja", "-t", "commands", "-s", program).strip()
            if f" tests/{room}/CMakeFiles/" not in link:
                continue
            if not (self.folder / program).exists():
                print(f"mutate: {program} is not built and left out", file=sys.stderr)
                continue
            environment = dict(v.split("=", 1) for v in properties.get("ENVIRONMENT", []))
            tests.append(Test(test["name"], program, command[1:], environment, link))
        return tests

    def compile(self, mutant, scratch):
        """The object of the changed file, or nothing where it does not compile."""
        text = (ROOT / mutant.file).read_text()
        lines = text.split("\n")
        first = mutant.line - 1
        count = mutant.before.count("\n") + 1
        assert "\n".join(lines[first:first + count]) == mutant.before
        lines[first:first + count] = [mutant.after] + [""] * (count - 1)
        source = scratch / pathlib.Path(mutant.file).name
        source.write_text("\n".join(lines))
        built = shlex.split(self.commands[mutant.file])
        made = scratch / "mutant.o"
        command = [argument for argument in built if argument != "-Werror"]
        command[command.index("-o") + 1] = str(made)
        command[command.index("-c") + 1] = str(source)
        # For includes beside the file.
        command.insert(command.index("-c"), f"-I{(ROOT / mutant.file).parent}")
        result = subprocess.run(command, cwd=self.folder, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL, check=False)
        if result.returncode != 0:
            return None, False
        original = self.folder / built[built.index("-o") + 1]
        return made, original.read_bytes() == made.read_bytes()

    def link(self, test, made, scratch):
        program = scratch / "test"
        # ": && c++ flags objects -o tests/NAME libraries && :"; what is named first is taken.
        command = test.link.replace(f" -o {test.program} ", f" {made} -o {program} ", 1)
        assert command != test.link, test.link
        subprocess.run(command, shell=True, cwd=self.folder, check=True)
        return program

    def passes(self, test, program, limit):
        """Whether it does, within a time."""
        def limit_memory():
            resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        try:
            result = subprocess.run(
                [str(program), *test.arguments], cwd=self.folder / "tests", timeout=limit,
                # The same cases of properties for every mutant.
                env={**os.environ, "RC_PARAMS": "seed=1", **test.environment},
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=limit_memory,
                check=False)
        except subprocess.TimeoutExpired:
            return False
        return result.returncode == 0


# --- the run ------------------------------------------------------------------------------------


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

    def add(self, mutant, verdict, **more):
        entry = {**dataclasses.asdict(mutant), "verdict": verdict, **more}
        self.entries[mutant.key()] = entry
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps(entry) + "\n")
        return entry


def measure(build, tests):
    """How long they take as they are; those that fail unchanged say nothing of a change."""
    good = []
    for test in tests:
        begin = time.monotonic()
        if build.passes(test, build.folder / test.program, 1800):
            test.seconds = time.monotonic() - begin
            good.append(test)
        else:
            print(f"mutate: {test.name} fails as it is and is left out", file=sys.stderr)
    return sorted(good, key=lambda test: test.seconds)


def verdict_on(build, mutant, tests, scratch):
    made, same = build.compile(mutant, scratch)
    if made is None:
        return "invalid", {}
    if same:
        return "equivalent", {"why": "the compiler makes the same code of it"}
    for test in tests:
        program = build.link(test, made, scratch)
        if not build.passes(test, program, 3 * test.seconds + 10):
            return "killed", {"by": test.name}
    return "survived", {}


def on_one_line(text):
    return re.sub(r"\s+", " ", text).strip()[:60]


def run_room(build, room, options, results):
    tests = None
    found = []
    for mutant in drawn(room, options.seed):
        if sum(entry["verdict"] != "invalid" for entry in found) >= options.samples:
            break
        if mutant.file not in build.commands:
            continue  # not in this build
        known = results.entries.get(mutant.key())
        if mutant.key() in results.equivalent:
            why = results.equivalent[mutant.key()]
            found.append({**dataclasses.asdict(mutant), "verdict": "equivalent", "why": why})
            continue
        if known and (known["verdict"] != "survived" or not options.again):
            found.append(known)
            continue
        if tests is None:
            tests = measure(build, build.tests_of(room))
        begin = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="mutate-") as scratch:
            verdict, more = verdict_on(build, mutant, tests, pathlib.Path(scratch))
        seconds = round(time.monotonic() - begin, 1)
        found.append(results.add(mutant, verdict, seconds=seconds, **more))
        if verdict != "invalid":
            print(f"{verdict:10} {seconds:6.1f} s  {mutant.file}:{mutant.line}  "
                  f"{on_one_line(mutant.before)}  ->  {on_one_line(mutant.after) or '(nothing)'}",
                  file=sys.stderr, flush=True)
    return found


def summarize(by_room):
    print(f"{'room':18} {'mutants':>7} {'equivalent':>10} {'killed':>6} {'survived':>8} {'rate':>7}")
    total = collections.Counter()
    for room, entries in [*by_room.items(), ("together", None)]:
        count = total if entries is None else collections.Counter(e["verdict"] for e in entries)
        if entries is not None:
            total.update(count)
        tried = count["killed"] + count["survived"]
        rate = f"{count['killed'] / tried:7.1%}" if tried else "      -"
        print(f"{room:18} {tried + count['equivalent']:7} {count['equivalent']:10} "
              f"{count['killed']:6} {count['survived']:8} {rate}")
    for entries in by_room.values():
        for entry in entries:
            if entry["verdict"] == "survived":
                print(f"\n{entry['file']}:{entry['line']}: survived\n- {entry['before'].strip()}"
                      f"\n+ {entry['after'].strip()}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rooms", default=",".join(CORE_ROOMS), metavar="ROOM,...")
    parser.add_argument("--samples", type=int, default=20, metavar="N", help="of every room")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--build", default=ROOT / "build/mutate", type=pathlib.Path)
    parser.add_argument("--results", type=pathlib.Path, metavar="FILE.jsonl",
                        help="build/mutants.jsonl unless given")
    parser.add_argument("--again", action="store_true", help="try survivors of earlier runs again")
    options = parser.parse_args()
    if shutil.which("ninja") is None:
        sys.exit("mutate: ninja is not there")
    build = Build(options.build.resolve())
    if any("/Unity/" in file for file in build.commands):
        sys.exit(f"mutate: {options.build} compiles many sources together: "
                 "configure it with -DSHARDSIM_UNITY=OFF")
    results = Results(options.results or ROOT / "build/mutants.jsonl")
    by_room = {}
    for room in options.rooms.split(","):
        if not (ROOT / room).is_dir():
            sys.exit(f"mutate: there is no room {room}")
        by_room[room] = run_room(build, room, options, results)
    summarize(by_room)


if __name__ == "__main__":
    main()
