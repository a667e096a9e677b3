"""Whether configurations of one model on one machine are ranked as they were measured."""

import json
from collections import defaultdict

from step_tables.rows import measured_time, percentile


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
