#!/usr/bin/env python3
"""Puts predicted step times beside published ones and writes the part of docs/accuracy.md on them.

    scripts/accuracy_steps.py STEPS.jsonl [SHARDSIM]
        [--tiers A,B] [--jobs 2] [--save FILE] [--use FILE] [--against FILE] [--write]
        [--evidence] [--ablations]

STEPS.jsonl has one published step a line: {"id", "family", "tier", "experiment" (as `run` takes
it), "measured": {"step_time_s" or "latency_s"}}. A row whose id hashes even (CRC-32) is of the half
that constants may be chosen with, an odd one of the half on which errors are reported. --save keeps
what came out, --use reads it again in place of running, --against shows what an earlier run kept
beside it. --write replaces the text between the two markers in docs/accuracy.md, --evidence what
reports have of steps near a prediction (reports/evidence/steps.tsv); sources are in the files beside
STEPS.jsonl that are named as the families. --ablations runs tiers A and B once more for each effect
that an experiment can switch off, and tables what that makes of their errors.
"""

import argparse
import concurrent.futures
import json
import pathlib
import subprocess
import sys
import tempfile
import zlib
from collections import defaultdict

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "accuracy.md"
EVIDENCE = ROOT / "reports" / "evidence" / "steps.tsv"
BEGIN = "<!-- scripts/accuracy_steps.py writes this part -->"
END = "<!-- up to here -->"
TIME_LIMIT_S = 120
# What was measured, and the key of a result that says it.
MEMORY_KINDS = {"allocated": "allocated_bytes", "reserved": "reserved_bytes", "smi": "process_bytes"}
# What a row's source says and its experiment does not, for which there is a key.
SAID_BESIDE = {"one-shot all-reduce": ("algorithms", {"all-reduce": "one-shot"})}


def is_report_half(row_id):
    return zlib.crc32(row_id.encode()) % 2 == 1


def measured_time(row):
    measured = row["measured"]
    return measured.get("step_time_s", measured.get("latency_s"))


def device_of(row):
    machine = row["experiment"].get("machine")
    if isinstance(machine, str):
        return machine
    changed = machine.get("device", {})
    name = changed.get("name") or " ".join(str(value) for value in changed.values())
    return f"{machine['extends']} ({name})" if name else f"{machine['extends']} (network)"


def memory_of(result, row):
    """By kind, of the rank that was measured: the first, the last or the fullest."""
    classes = result["memory"]["per_device_class"]
    place = {"first": 0, "last": -1}.get(row["measured"].get("memory_rank"))
    counted = result["memory"] if place is None else classes[place]
    return {kind: counted[key] for kind, key in MEMORY_KINDS.items()}


def predict(shardsim, folder, number, row):
    """What one row came to: {"predicted": seconds} or {"refused": message}."""
    path = pathlib.Path(folder) / f"{number}.json"
    experiment = dict(row["experiment"])
    for said, (key, value) in SAID_BESIDE.items():
        if any(said in text for text in row.get("not_said", [])):
            experiment.setdefault(key, value)
    path.write_text(json.dumps(experiment))
    try:
        run = subprocess.run(
            [shardsim, "run", str(path), "--format", "json"],
            capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return {"refused": f"took more than {TIME_LIMIT_S} s"}
    finally:
        path.unlink()
    if run.returncode != 0:
        lines = [line for line in run.stderr.splitlines() if line.strip()]
        first = lines[0] if lines else f"exit code {run.returncode}"
        return {"refused": first.replace(str(path), "row")}
    result = json.loads(run.stdout)
    return {"predicted": result["step_time_s"], "memory": memory_of(result, row),
            "situation": result.get("situation")}


def predict_all(shardsim, rows, jobs):
    with tempfile.TemporaryDirectory() as folder:
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            futures = [pool.submit(predict, shardsim, folder, i, row) for i, row in enumerate(rows)]
            return {row["id"]: future.result() for row, future in zip(rows, futures)}


def percentile(values, share):
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def ratios_of(rows, outcomes):
    return [outcomes[row["id"]]["predicted"] / measured_time(row) for row in rows
            if "predicted" in outcomes.get(row["id"], {})]


def figures(ratios):
    """Median and 90th percentile of |ratio - 1|, and the median ratio less 1, in percent."""
    errors = [abs(ratio - 1) * 100 for ratio in ratios]
    return percentile(errors, 0.5), percentile(errors, 0.9), (percentile(ratios, 0.5) - 1) * 100


def table(title, groups, outcomes, earlier):
    head = f"| {title} | rows | refused | median | p90 | bias |"
    line = "|---|--:|--:|--:|--:|--:|"
    if earlier:
        head += " median before | bias before |"
        line += "--:|--:|"
    lines = [head, line]
    for name, rows in groups:
        ratios = ratios_of(rows, outcomes)
        cells = [name, str(len(rows)), str(len(rows) - len(ratios))]
        cells += [f"{x:.1f}" for x in figures(ratios)[:2]] if ratios else ["", ""]
        cells.append(f"{figures(ratios)[2]:+.1f}" if ratios else "")
        if earlier:
            old = ratios_of(rows, earlier)
            cells.append(f"{figures(old)[0]:.1f}" if old else "")
            cells.append(f"{figures(old)[2]:+.1f}" if old else "")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def grouped(rows, key):
    groups = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))


def strategy_of(row):
    strategy = row["experiment"].get("strategy", {})
    return strategy if isinstance(strategy, str) else strategy.get("name", "none")


def memory(rows, outcomes):
    """Beside what was measured: allocated, reserved, or all of the process, as nvidia-smi says."""
    groups = defaultdict(list)
    for row in rows:
        predicted = outcomes.get(row["id"], {}).get("memory", {})
        for kind, measured in row["measured"].get("peak_memory_bytes", {}).items():
            if kind in predicted:
                peak = predicted[kind]
                groups[f"{kind}, {row['family']} ({row['tier']})"].append(peak / measured)
    if not groups:
        return ""
    lines = ["| memory | rows | median | p90 | bias |", "|---|--:|--:|--:|--:|"]
    for name, ratios in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
        median, p90, bias = figures(ratios)
        lines.append(f"| {name} | {len(ratios)} | {median:.1f} | {p90:.1f} | {bias:+.1f} |")
    return "\n".join(lines) + "\n"


def known_error(rows, outcomes):
    """What reports say beside step times (reports/format/known_error.hpp), of tiers A and B."""
    rows = [row for row in rows if row["tier"] in ("A", "B")]
    measured = [1 / ratio for ratio in ratios_of(rows, outcomes)]
    if not measured:
        return ""
    cells = [str(len(measured))] + [f"{percentile(measured, share):.2f}" for share in (0.1, 0.5, 0.9)]
    return ("| measured / predicted, A and B | 10th percentile | median | 90th percentile |\n"
            "|--:|--:|--:|--:|\n| " + " | ".join(cells) + " |\n")


def without_power_limit(experiment):
    machine = experiment["machine"]
    machine = {"extends": machine} if isinstance(machine, str) else dict(machine)
    machine["device"] = {**machine.get("device", {}), "power_limit": "100 kW"}
    return {**experiment, "machine": machine}


def with_strategy(experiment, change):
    strategy = experiment.get("strategy", {})
    return {**experiment, "strategy": change(dict(strategy))} if isinstance(strategy, dict) else experiment


def without_product_overlap(strategy):
    if "async_tp" in strategy: strategy["async_tp"] = False
    if "overlap" in strategy: strategy["overlap"] = {**strategy["overlap"], "tp": False}
    return strategy


def without_gradient_overlap(strategy):
    if "overlap" in strategy:
        strategy["overlap"] = {**strategy["overlap"], "gradients": False, "parameters": False}
    return strategy


def with_kernels(strategy, change):
    kernels = strategy.get("kernels")
    if isinstance(kernels, str): kernels = {"base": kernels}
    return {**strategy, "kernels": change(dict(kernels))} if kernels else strategy


def without_generation(kernels):
    kernels.pop("attention", None)
    return kernels


# Effects, and an experiment as if there were none.
ABLATIONS = {
    "the clock that power leaves": without_power_limit,
    "the host's time to issue kernels": lambda one: with_strategy(one, lambda strategy: with_kernels(
        strategy, lambda kernels: {**kernels, "graphs": "full-iteration"})),
    "tensor parallelism beside products": lambda one: with_strategy(one, without_product_overlap),
    "gradients and parameters beside kernels": lambda one: with_strategy(one,
                                                                         without_gradient_overlap),
    "which attention kernel is meant": lambda one: with_strategy(one, lambda strategy: with_kernels(
        strategy, without_generation)),
}


def ablations(shardsim, rows, outcomes, jobs):
    rows = [row for row in rows if row["tier"] in ("A", "B")]
    lines = ["| without, tiers A and B | rows it changes | median | p90 | bias | of these before: median | "
             "p90 | bias |", "|---|--:|--:|--:|--:|--:|--:|--:|"]
    for name, change in ABLATIONS.items():
        changed = [{**row, "experiment": change(row["experiment"])} for row in rows]
        without = predict_all(shardsim, changed, jobs)
        moved = [row for row in rows if "predicted" in without[row["id"]]
                 and "predicted" in outcomes[row["id"]]
                 and without[row["id"]]["predicted"] != outcomes[row["id"]]["predicted"]]
        if not moved: continue
        cells = [f"{value:.1f}" for of in (without, outcomes) for value in figures(ratios_of(moved, of))]
        lines.append(f"| {name} | {len(moved)} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def kendall(pairs):
    """Of (predicted, measured): concordant less discordant over all pairs that differ in both."""
    concordant = discordant = 0
    for i, (predicted, measured) in enumerate(pairs):
        for other_predicted, other_measured in pairs[i + 1:]:
            sign = (predicted - other_predicted) * (measured - other_measured)
            concordant += sign > 0
            discordant += sign < 0
    counted = concordant + discordant
    return (concordant - discordant) / counted if counted else None


def ranking(rows, outcomes):
    """Are configurations of one model on one machine ranked as measured, by time over the batch?"""
    groups = defaultdict(list)
    for row in rows:
        if "predicted" not in outcomes[row["id"]] or row["tier"] == "other": continue
        experiment = row["experiment"]
        workload = experiment["workload"]
        devices = 1
        for size in experiment["mesh"].values(): devices *= size
        work = workload["batch"] * workload.get("sequence", 1) / devices
        key = (row["family"], json.dumps([workload["model"], experiment["machine"],
                                          workload.get("precision")], sort_keys=True))
        groups[key].append((outcomes[row["id"]]["predicted"] / work, measured_time(row) / work))
    by_family = defaultdict(list)
    for (family, _), pairs in groups.items():
        tau = kendall(pairs)
        if len(pairs) >= 4 and tau is not None: by_family[family].append(tau)
    lines = ["| ranking of configurations of one model and machine | groups of 4 and more | median of "
             "Kendall's tau |", "|---|--:|--:|"]
    for family, taus in sorted(by_family.items(), key=lambda item: -len(item[1])):
        lines.append(f"| {family} | {len(taus)} | {percentile(taus, 0.5):.2f} |")
    taus = [tau for found in by_family.values() for tau in found]
    if not taus: return ""
    lines.append(f"| all | {len(taus)} | {percentile(taus, 0.5):.2f} |")
    return "\n".join(lines) + "\n"


def document(rows, outcomes, earlier):
    tiers = sorted(grouped(rows, lambda row: row["tier"]), key=lambda item: item[0])
    halves = []
    for tier, members in tiers:
        halves.append((f"{tier}, fit", [row for row in members if not is_report_half(row["id"])]))
        halves.append((f"{tier}, report", [row for row in members if is_report_half(row["id"])]))
    text = "Errors are |predicted / measured - 1| in percent; bias is the median ratio less 1. "
    text += "Constants may be chosen with the *fit* half, the *report* half was not looked at.\n\n"
    text += table("tier", tiers, outcomes, earlier) + "\n"
    text += table("half", [half for half in halves if half[1]], outcomes, earlier) + "\n"
    for title, key in (("strategy", strategy_of), ("machine", device_of)):
        for tier, members in tiers:
            if tier in ("A", "B"):
                text += table(f"{title}, tier {tier}", grouped(members, key), outcomes,
                              earlier) + "\n"
    text += table("family", grouped(rows, lambda row: f"{row['family']} ({row['tier']})"),
                  outcomes, earlier) + "\n"
    text += memory(rows, outcomes) + "\n"
    text += ranking(rows, outcomes) + "\n"
    text += known_error(rows, outcomes) + "\n"
    text += worst(rows, outcomes) + "\n" + refusals(rows, outcomes)
    return text


def worst(rows, outcomes):
    found = [(abs(outcomes[row["id"]]["predicted"] / measured_time(row) - 1), row["id"],
              outcomes[row["id"]]["predicted"], measured_time(row))
             for row in rows if row["tier"] == "A" and "predicted" in outcomes[row["id"]]]
    lines = ["| worst of tier A | predicted, s | measured, s |", "|---|--:|--:|"]
    for _, row_id, predicted, measured in sorted(found, reverse=True)[:10]:
        lines.append(f"| {row_id} | {predicted:.3f} | {measured:.3f} |")
    return "\n".join(lines) + "\n"


def refusals(rows, outcomes):
    reasons = defaultdict(lambda: defaultdict(int))
    for row in rows:
        if "refused" in outcomes[row["id"]]:
            reasons[outcomes[row["id"]]["refused"]][row["tier"]] += 1
    lines = ["| refused | rows by tier |", "|---|---|"]
    for reason, tiers in sorted(reasons.items(), key=lambda item: -sum(item[1].values())):
        counts = ", ".join(f"{tier} {count}" for tier, count in sorted(tiers.items()))
        lines.append(f"| {reason.replace('|', '/')[:160]} | {counts} |")
    return "\n".join(lines) + "\n" if len(lines) > 2 else ""


def write_document(text):
    whole = DOCUMENT.read_text()
    if BEGIN not in whole or END not in whole:
        sys.exit(f"{DOCUMENT}: no markers to write between")
    before, rest = whole.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    DOCUMENT.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{after}")


def source_of(family, folder):
    """Where a family's rows were published: of the first file that is named so."""
    found = sorted(folder.glob(f"{family}*.json"))
    source = json.loads(found[0].read_text())["source"] if found else {}
    parts = [source.get(key) for key in ("title", "repo", "repo_or_site", "path", "file")]
    parts += source.get("titles", [])
    commit = source.get("commit", "")
    if isinstance(commit, str) and commit: parts.append("@" + commit[:7])
    return " ".join(part for part in parts if part)


def write_evidence(rows, outcomes, folder):
    known = [(row, outcomes[row["id"]]) for row in rows
             if outcomes[row["id"]].get("situation") and row["tier"] != "other"]
    lines = ["# Published steps whose stack is known, with what this version predicts of each:",
             "# written by scripts/accuracy_steps.py --evidence. The sources:"]
    for family in sorted({row["family"] for row, _ in known}):
        lines.append(f"# {family}: {source_of(family, folder)}")
    lines.append("\t".join(("id", "stack", "device", "step", "kind", "parameters", "devices", "tokens",
                            "sequence", "measured_s", "predicted_s")))
    for row, outcome in known:
        there = outcome["situation"]
        cells = [row["id"], there["stack"], there["device"], there["step"],
                 "experts" if there["experts"] else "dense"]
        cells += [f"{there[key]:.0f}" for key in ("parameters", "devices", "tokens", "sequence")]
        cells += [f"{measured_time(row):.4g}", f"{outcome['predicted']:.4g}"]
        lines.append("\t".join(cells))
    EVIDENCE.write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("steps")
    parser.add_argument("shardsim", nargs="?", default=str(ROOT / "build/release/shardsim"))
    parser.add_argument("--tiers")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--save")
    parser.add_argument("--use")
    parser.add_argument("--against")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--evidence", action="store_true")
    parser.add_argument("--ablations", action="store_true")
    options = parser.parse_args()

    tiers = options.tiers.split(",") if options.tiers else None
    with open(options.steps, encoding="utf-8") as lines:
        rows = [row for row in map(json.loads, lines)
                if measured_time(row) and (not tiers or row["tier"] in tiers)]
    earlier = json.loads(pathlib.Path(options.against).read_text()) if options.against else None
    if options.use:
        outcomes = json.loads(pathlib.Path(options.use).read_text())
        rows = [row for row in rows if row["id"] in outcomes]
    else:
        outcomes = predict_all(options.shardsim, rows, options.jobs)
    if options.save:
        pathlib.Path(options.save).write_text(json.dumps(outcomes, indent=0, sort_keys=True))
    if options.evidence:
        write_evidence(rows, outcomes, pathlib.Path(options.steps).parent)
    text = document(rows, outcomes, earlier)
    if options.ablations:
        text += "\n" + ablations(options.shardsim, rows, outcomes, options.jobs)
    if options.write:
        write_document(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
