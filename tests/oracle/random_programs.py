"""Random programs: are shardsim's collectives those of XLA?

    random_programs.py SHARDSIM [--count 500] [--seeds 1,2] [--families einsum,mixed] [--jobs 2]
                       [--least 0.9] [--reduce FOLDER] [--document FILE] [--only FAMILY:NUMBER]

Prints for every seed how many programs agree, by family; with --reduce makes every one that does not
as small as it goes and writes it, with both lists of collectives, into FOLDER. --document writes all
seeds as one page of Markdown, with the reason of each difference that reasons.json knows. Exit code 1
when of some seed fewer than --least are identical, or one failed. Programs that XLA itself refuses, or
partitions into something that computes other numbers, do not count.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import queue
import sys
import threading

import compare
import generate
import program as programs
import reduce

FAMILIES = [*generate.FAMILIES, "einsum gradient", "reduce gradient", "shape gradient",
            "index gradient", "loop gradient", "mixed gradient"]


def fault_of(result):
    """What a reduction keeps."""
    if result.outcome == "failed":
        return "fails"
    if result.outcome in ("same bytes", "cheaper", "different"):
        return "differs from XLA"
    if result.outcome == "wrong in XLA":
        return "XLA computes other numbers"
    return "sends more than XLA without --like xla" if result.saves() < 0 else None


class Run:
    """Programs are dealt to threads; each has its own XLA process."""

    def __init__(self, options, seed):
        self.options = options
        self.seed = seed
        self.total = collections.Counter()
        self.reports = {}  # of programs that disagree, by name
        self.tallies = collections.defaultdict(collections.Counter)
        self.reasons = collections.Counter()
        self.saved = collections.Counter()
        self.waiting = queue.Queue()
        self.lock = threading.Lock()

    def run(self):
        families = self.options.families.split(",") if self.options.families else FAMILIES
        if self.options.only:
            family, number = self.options.only.split(":")
            self.waiting.put((family, int(number)))
        else:
            for i in range(self.options.count):
                self.waiting.put((families[i % len(families)], i // len(families)))
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            for work in [pool.submit(self.work) for _ in range(self.options.jobs)]:
                work.result()

    def work(self):
        comparison = compare.Comparison(self.options.shardsim)
        while True:
            try:
                family, number = self.waiting.get_nowait()
            except queue.Empty:
                break
            program = generate.generate(family, f"{self.seed} {number}")
            result = comparison(program)
            with self.lock:
                self.tallies[family][result.outcome] += 1
                self.saved["fewer" if result.saves() > 0 else "more"] += result.saves() != 0
                if result.reason:
                    self.reasons[result.outcome, result.reason.splitlines()[0]] += 1
            if self.options.only:
                print(programs.summary(program), result.report(), sep="\n")
            if self.options.reduce or self.options.document:
                self.make_small(f"{self.seed} {family} {number}", program, result, comparison)
        comparison.close()

    def make_small(self, name, program, result, comparison):
        fault = fault_of(result)
        if fault is None:
            return

        def disagrees(candidate):
            nonlocal result
            found = comparison(candidate)
            if fault_of(found) != fault:
                return False
            result = found
            return True

        program = reduce.reduce(program, disagrees)
        report = f"{programs.summary(program)}\n\n{fault}\n{result.report()}\n"
        with self.lock:
            self.reports[name] = report
        if not self.options.reduce:
            return
        path = os.path.join(self.options.reduce, name.replace(" ", "_"))
        for suffix, text in ((".txt", report), (".mlir", result.stablehlo),
                             (".hlo", result.partitioned)):
            with open(path + suffix, "w", encoding="utf-8") as file:
                file.write(text)

    def compared(self):
        return sum(self.total.values()) - sum(self.total[o] for o in compare.NOT_COMPARED)

    def share(self):
        return self.total["identical"] / self.compared() if self.compared() else 0.0

    def table(self):
        rows = []
        for family, tally in self.tallies.items():
            rows.append((family, tally))
            self.total += tally
        rows.append(("all", self.total))
        columns = compare.OUTCOMES
        lines = [f"{f'seed {self.seed}':18}" + "".join(f"{c:>{len(c) + 2}}" for c in columns)]
        for family, tally in rows:
            lines.append(f"{family:18}" + "".join(f"{tally[c]:{len(c) + 2}}" for c in columns))
        lines.append(f"identical: {self.total['identical']} of {self.compared()}, "
                     f"{100 * self.share():.1f} %")
        lines.append(f"without --like xla: {self.saved['fewer']} send fewer bytes than XLA's, "
                     f"{self.saved['more']} more")
        for (outcome, reason), count in sorted(self.reasons.items(), key=lambda item: -item[1]):
            lines.append(f"{count:4} {outcome}: {reason[:160]}")
        return "\n".join(lines)


def document(runs, options):
    """The page docs/xla-agreement-random.md."""
    with open(os.path.join(compare.HERE, "reasons.json"), encoding="utf-8") as file:
        reasons = json.load(file)
    seeds = ",".join(str(run.seed) for run in runs)
    lines = ["# Random programs against XLA", "",
             f"{options.count} programs per seed, with `--like xla` against XLA's partitioner, live: "
             "the same collectives (kind, axes or", "groups or pairs, dtype, payload, count) are "
             "*identical*. Generated by", "", "```",
             "tests/oracle/random_programs.py build/release/shardsim "
             f"--count {options.count} --seeds {seeds} \\",
             "  --document docs/xla-agreement-random.md", "```", "",
             "| seed | " + " | ".join(compare.OUTCOMES) + " | share identical |",
             "|---|" + "---|" * (len(compare.OUTCOMES) + 1)]
    for run in runs:
        counts = " | ".join(str(run.total[outcome]) for outcome in compare.OUTCOMES)
        lines.append(f"| {run.seed} | {counts} | {100 * run.share():.1f} % |")
    lines += ["", "Without `--like xla`: "
              f"{sum(run.saved['fewer'] for run in runs)} programs send fewer bytes than XLA's, "
              f"{sum(run.saved['more'] for run in runs)} more.", "", "## What remains", ""]
    for run in runs:
        for name, report in sorted(run.reports.items()):
            lines += [f"### {name}", "", reasons.get(name, "No reason is known."), "", "```",
                      *report.rstrip().splitlines(), "```", ""]
    if not any(run.reports for run in runs):
        lines.append("Nothing.")
    with open(options.document, "w", encoding="utf-8") as file:
        file.write("\n".join(lines).rstrip() + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("shardsim")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seeds", default="1")
    parser.add_argument("--families", default="")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--least", type=float, default=0.0)
    parser.add_argument("--reduce", metavar="FOLDER")
    parser.add_argument("--document", metavar="FILE")
    parser.add_argument("--only", metavar="FAMILY:NUMBER")
    options = parser.parse_args()
    if options.reduce:
        os.makedirs(options.reduce, exist_ok=True)
    runs = []
    for seed in options.seeds.split(","):
        run = Run(options, int(seed))
        run.run()
        print(run.table(), flush=True)
        runs.append(run)
        if options.document:
            document(runs, options)
    short = any(run.share() < options.least or run.total["failed"] for run in runs)
    sys.exit(1 if short else 0)


if __name__ == "__main__":
    main()
