"""Published steps as rows: what was measured of one, what is predicted, and by how much that is off."""

import concurrent.futures
import json
import pathlib
import subprocess
import tempfile
from collections import defaultdict


TIME_LIMIT_S = 120
# What was measured, and the key of a result that says it.
MEMORY_KINDS = {"allocated": "allocated_bytes", "reserved": "reserved_bytes", "smi": "process_bytes"}
# What a row's source says and its experiment does not, for which there is a key.
SAID_BESIDE = {"one-shot all-reduce": ("algorithms", {"all-reduce": "one-shot"})}


def measured_time(row):
    measured = row["measured"]
    return measured.get("step_time_s", measured.get("latency_s"))


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


def grouped(rows, key):
    groups = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
