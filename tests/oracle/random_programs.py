"""Random programs: are shardsim's collectives those of XLA?

    random_programs.py SHARDSIM [--count 500] [--seed 1] [--families einsum,mixed] [--jobs 2]
                       [--least 0.9] [--reduce FOLDER] [--only FAMILY:NUMBER]

Prints how many programs agree, by family; with --reduce makes every one that does not as small as it
goes and writes it, with both lists of collectives, into FOLDER. Exit code 1 when fewer than --least
are identical. Programs that XLA itself refuses do not count.
"""

import argparse
import collections
import concurrent.futures
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


class Run:
    """Programs are dealt to threads; each has its own XLA process."""

    def __init__(self, options):
        self.options = options
        self.tallies = collections.defaultdict(collections.Counter)
        self.reasons = collections.Counter()
        self.todo = queue.Queue()
        self.lock = threading.Lock()

    def run(self):
        families = self.options.families.split(",") if self.options.families else FAMILIES
        if self.options.only:
            family, number = self.options.only.split(":")
            self.todo.put((family, int(number)))
        else:
            for i in range(self.options.count):
                self.todo.put((families[i % len(families)], i // len(families)))
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            for work in [pool.submit(self.work) for _ in range(self.options.jobs)]:
                work.result()

    def work(self):
        comparison = compare.Comparison(self.options.shardsim)
        while True:
            try:
                family, number = self.todo.get_nowait()
            except queue.Empty:
                break
            program = generate.generate(family, f"{self.options.seed} {number}")
            result = comparison(program)
            with self.lock:
                self.tallies[family][result.outcome] += 1
                if result.reason:
                    self.reasons[result.outcome, result.reason.splitlines()[0]] += 1
            if self.options.only:
                print(programs.summary(program), result.report(), sep="\n")
            if self.options.reduce and result.outcome not in ("identical", "refused by XLA"):
                self.write(f"{family} {number}".replace(" ", "_"), program, result, comparison)
        comparison.close()

    def write(self, name, program, result, comparison):
        outcome = result.outcome

        def disagrees(candidate):
            nonlocal result
            found = comparison(candidate)
            same = (found.outcome == "failed") == (outcome == "failed")
            if not same or found.outcome in ("identical", "refused by XLA"):
                return False
            result = found
            return True

        program = reduce.reduce(program, disagrees)
        path = os.path.join(self.options.reduce, name)
        with open(path + ".txt", "w", encoding="utf-8") as file:
            file.write(f"{programs.summary(program)}\n\n{result.report()}\n")
        for suffix, text in ((".mlir", result.stablehlo), (".hlo", result.partitioned)):
            with open(path + suffix, "w", encoding="utf-8") as file:
                file.write(text)

    def table(self):
        total = collections.Counter()
        rows = []
        for family, tally in self.tallies.items():
            rows.append((family, tally))
            total += tally
        rows.append(("all", total))
        columns = compare.OUTCOMES
        lines = [f"{'family':18}" + "".join(f"{c:>{len(c) + 2}}" for c in columns)]
        for family, tally in rows:
            lines.append(f"{family:18}" + "".join(f"{tally[c]:{len(c) + 2}}" for c in columns))
        compared = sum(total.values()) - total["refused by XLA"]
        share = total["identical"] / compared if compared else 0.0
        lines.append(f"identical: {total['identical']} of {compared}, {100 * share:.1f} %")
        return "\n".join(lines), share


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("shardsim")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--families", default="")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--least", type=float, default=0.0)
    parser.add_argument("--reduce", metavar="FOLDER")
    parser.add_argument("--only", metavar="FAMILY:NUMBER")
    options = parser.parse_args()
    if options.reduce:
        os.makedirs(options.reduce, exist_ok=True)
    run = Run(options)
    run.run()
    table, share = run.table()
    print(table)
    for (outcome, reason), count in sorted(run.reasons.items(), key=lambda item: -item[1]):
        print(f"{count:4} {outcome}: {reason[:160]}")
    sys.exit(1 if share < options.least else 0)


if __name__ == "__main__":
    main()
