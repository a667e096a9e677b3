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
import json
import pathlib
import sys
import zlib
from collections import defaultdict

from step_tables.ablations import ablations
from step_tables.evidence import write_evidence
from step_tables.ranking import ranking
from step_tables.rows import figures, grouped, measured_time, percentile, predict_all, ratios_of

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "accuracy.md"
BEGIN = "<!-- scripts/accuracy_steps.py writes this part -->"
END = "<!-- up to here -->"


def is_report_half(row_id):
    return zlib.crc32(row_id.encode()) % 2 == 1


def device_of(row):
    machine = row["experiment"].get("machine")
    if isinstance(machine, str):
        return machine
    changed = machine.get("device", {})
    name = changed.get("name") or " ".join(str(value) for value in changed.values())
    return f"{machine['extends']} ({name})" if name else f"{machine['extends']} (network)"


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
