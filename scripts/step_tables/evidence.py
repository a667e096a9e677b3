"""Published steps as reports show them beside a prediction (reports/evidence/evidence.hpp)."""

import json
import pathlib

from step_tables.rows import measured_time

EVIDENCE = pathlib.Path(__file__).resolve().parents[2] / "reports" / "evidence" / "steps.tsv"


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
