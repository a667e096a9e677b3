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
# Pope et al.'s partitionings, which their rows name beside an experiment whose axes have no roles:
# the variants of an example that has them, by layout and step.
PARTITIONINGS = pathlib.Path(__file__).resolve().parents[2] / "examples" / "palm-540b-served.json"
VARIANTS = {("WS 2D", "decode"): "decode", ("WS 2D", "prefill"): "prefill",
            ("WG XYZ", "prefill"): "prefill of many"}


def measured_time(row):
    measured = row["measured"]
    return measured.get("step_time_s", measured.get("latency_s"))


def memory_of(result, row):
    """By kind, of the rank that was measured: the first, the last or the fullest."""
    classes = result["memory"]["per_device_class"]
    place = {"first": 0, "last": -1}.get(row["measured"].get("memory_rank"))
    counted = result["memory"] if place is None else classes[place]
    return {kind: counted[key] for kind, key in MEMORY_KINDS.items()}


def merged(base, changes):
    if not isinstance(base, dict) or not isinstance(changes, dict):
        return changes
    return {**base, **{key: merged(base.get(key), value) for key, value in changes.items()}}


def partitioned(row):
    """The row's experiment under the partitioning that its source names, or as it is."""
    layouts = [text.split(": ")[1] for text in row.get("not_said", [])
               if text.startswith("ffn_layout: ")]
    workload = row["experiment"]["workload"]
    variant = VARIANTS.get((layouts[0], workload["step"])) if layouts else None
    if variant is None:
        return dict(row["experiment"])
    lines = PARTITIONINGS.read_text().splitlines()
    whole = json.loads("\n".join(line for line in lines if not line.startswith("//")))
    variants = {one.pop("name"): one for one in whole.pop("variants")}
    experiment = merged(whole, variants[variant])
    own = "context" if workload["step"] == "decode" else "sequence"
    for key in ("batch", "precision", own):  # a prompt's "context" is what it makes
        experiment["workload"][key] = workload[key]
    experiment["mesh"] = row["experiment"]["mesh"]
    experiment["machine"] = row["experiment"]["machine"]
    return experiment


def predict(shardsim, folder, number, row):
    """What one row came to: {"predicted": seconds} or {"refused": message}."""
    path = pathlib.Path(folder) / f"{number}.json"
    experiment = partitioned(row)
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
