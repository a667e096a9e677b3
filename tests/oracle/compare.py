"""One program through XLA and through shardsim, and how their collectives compare.

Both sides are read by shardsim's importers, so that they have one normal form; `recount` counts the
instructions of XLA's text without them. Where the two differ the program is run: XLA's own may compute
something else than the unpartitioned one, and is nothing to agree with then.
"""

import collections
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
OUTCOMES = ["identical", "same bytes", "cheaper", "different", "failed", "refused by XLA",
            "wrong in XLA"]
NOT_COMPARED = ["refused by XLA", "wrong in XLA"]


class Xla:
    """A worker process that is started again when XLA took it down."""

    def __init__(self):
        self.process = None

    def ask(self, program):
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, os.path.join(HERE, "xla_worker.py")], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.process.stdin.write(json.dumps(program) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        self.close()
        return {"refused": "XLA ended its process"}

    def close(self):
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()
            self.process = None


class Collectives:
    """A multiset of collectives: kind, where, dtype, payload -> executions per step."""

    def __init__(self, plan):
        self.counts = collections.Counter()
        self.bytes = collections.Counter()  # of kind and where
        self.wire = 0.0  # bytes that one device sends, by rings
        for row in plan["collectives"]:
            pairs = row.get("source_target_pairs")
            if pairs is not None:
                where = str(sorted(map(tuple, pairs)))
                if all(source == target for source, target in pairs):
                    continue
            else:
                where = ",".join(row.get("axes") or []) or str(sorted(row["groups"]))
            kind, payload, count = row["kind"], row["payload_bytes"], row["count"]
            self.counts[kind, where, row["dtype"], payload] += count
            self.bytes[kind, where] += payload * count
            size = row["group_size"]
            share = {"all-reduce": 2 * (size - 1) / size, "collective-permute": 1.0}
            self.wire += count * payload * share.get(kind, (size - 1) / size)

    def lines(self):
        return [f"{count} x {kind} {where} {dtype} {payload}"
                for (kind, where, dtype, payload), count in sorted(self.counts.items())]


class Result:
    """`xla`, `ours`: the two sides; `default`: what shardsim makes without --like xla, or None."""

    def __init__(self, outcome, reason="", xla=None, ours=None, default=None, stablehlo="",
                 partitioned=""):
        self.outcome = outcome
        self.reason = reason
        self.xla = xla
        self.ours = ours
        self.default = default
        self.stablehlo = stablehlo
        self.partitioned = partitioned

    def saves(self):
        """Bytes that a device sends less than XLA's by default; below 0: more."""
        return 0 if self.default is None else self.xla.wire - self.default.wire

    def report(self):
        lines = [self.outcome] + ([self.reason] if self.reason else [])
        for name, side in (("XLA", self.xla), ("shardsim --like xla", self.ours),
                           ("shardsim", self.default if self.saves() else None)):
            if side is not None:
                lines += [f"{name}, {side.wire:.0f} bytes sent:"]
                lines += ["  " + line for line in side.lines()]
        return "\n".join(lines)


def recount(hlo):
    """Collective instructions by kind, all-reduces and reduce-scatters as one, or None where a loop
    or a branch runs some of them more or less than once."""
    if re.search(r"\s(while|conditional|call)\(", hlo):
        return None
    kinds = re.findall(
        r"\s(all-gather|all-reduce|reduce-scatter|all-to-all|collective-permute)\(", hlo)
    still = re.findall(r"source_target_pairs=\{((?:\{(\d+),\2\},?)*)\}", hlo)
    counts = collections.Counter(k.replace("reduce-scatter", "all-reduce") for k in kinds)
    counts["collective-permute"] -= len(still)
    return +counts


def count_of(collectives):
    counts = collections.Counter()
    for (kind, *_), count in collectives.counts.items():
        counts[kind.replace("reduce-scatter", "all-reduce")] += count
    return counts


class Comparison:
    def __init__(self, shardsim):
        self.shardsim = shardsim
        self.xla = Xla()
        self.scratch = tempfile.TemporaryDirectory()

    def close(self):
        self.xla.close()
        self.scratch.cleanup()

    def plan(self, kind, text, *options):
        path = os.path.join(self.scratch.name, "program." + kind)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        try:
            done = subprocess.run([self.shardsim, "import", kind, path, "--format", "json",
                                   *options], capture_output=True, text=True, timeout=60)
        except subprocess.TimeoutExpired:
            return None, "no answer within a minute"
        if done.returncode != 0:
            message = done.stderr.strip().replace(path, "program")
            return None, message or f"ended by signal {-done.returncode}"
        return Collectives(json.loads(done.stdout)), ""

    def __call__(self, program):
        answer = self.xla.ask(program)
        if "refused" in answer:
            return Result("refused by XLA", answer["refused"])
        texts = {"stablehlo": answer["stablehlo"], "partitioned": answer["partitioned"]}
        mesh = ",".join(f"{name}={size}" for name, size in program["mesh"])
        xla, error = self.plan("hlo", answer["partitioned"], "--mesh", mesh)
        if xla is None:
            return Result("failed", "XLA's text: " + error, **texts)
        independent = recount(answer["partitioned"])
        if independent is not None and independent != count_of(xla):
            return Result("failed", f"miscounted: {independent} in XLA's text", xla=xla, **texts)
        ours, error = self.plan("stablehlo", answer["stablehlo"], "--like", "xla")
        if ours is None:
            return Result("failed", error, xla=xla, **texts)
        default, error = self.plan("stablehlo", answer["stablehlo"])
        if default is None:
            return Result("failed", "without --like xla: " + error, xla=xla, ours=ours, **texts)
        if ours.counts == xla.counts:
            outcome = "identical"
        elif ours.bytes == xla.bytes:
            outcome = "same bytes"
        else:
            outcome = "cheaper" if ours.wire < xla.wire else "different"
        if outcome != "identical":
            wrong = self.xla.ask({**program, "run": True}).get("wrong")
            if wrong:
                return Result("wrong in XLA", wrong, xla=xla, ours=ours, **texts)
        return Result(outcome, xla=xla, ours=ours, default=default, **texts)
