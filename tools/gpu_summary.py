#!/usr/bin/env python3
"""Makes summary.md of a folder that scripts/gpu.sh measured, and prints it.

    python gpu_summary.py FOLDER

Whatever part is missing is left out; a result that cannot be read is said with its reason, and the
exit code is 1.
"""

import glob
import json
import os
import sys

GIB = 2**30


def gibibytes(count):
    return f"{count / GIB:.2f} GiB"


def seconds(value):
    return f"{value * 1e3:.3f} ms"


def error(predicted, measured):
    return f"{(predicted / measured - 1) * 100:+.1f} %"


def table(title, head, rows):
    if not rows:
        return []
    lines = [f"## {title}", "", "| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows] + [""]


class Folder:
    """The results of a folder by name, and what could not be read of them."""

    def __init__(self, path):
        self.path = path
        self.broken = []

    def find(self, pattern):
        """(name without ending, document) of every JSON file that fits, in the order of names."""
        for path in sorted(glob.glob(os.path.join(self.path, pattern))):
            try:
                with open(path, encoding="utf-8") as file:
                    yield os.path.splitext(os.path.basename(path))[0], json.load(file)
            except (OSError, ValueError) as reason:
                self.broken.append(f"{os.path.basename(path)}: {reason}")

    def text(self, name):
        try:
            with open(os.path.join(self.path, name), encoding="utf-8") as file:
                return file.read().strip()
        except OSError:
            return ""


def parts_of(folder):
    rows = []
    for path in sorted(glob.glob(os.path.join(folder.path, "*.status"))):
        name = os.path.basename(path).removesuffix(".status")
        words = folder.text(name + ".status").split()
        result = f"failed, exit code {words[1]}" if words[0] == "failed" else "done"
        rows.append([name, result, words[-1] + " s"])
    return table("Parts", ["part", "result", "took"], rows)


def steps_of(folder):
    rows = []
    for pattern in ("step-*.json", "calibrated-*.json"):
        for name, result in folder.find(pattern):
            step, memory = result["step"], result["memory"]
            peak = memory[0]["peak"] if memory else None
            rows.append([name, result["machine"].split("/")[-1], seconds(step["predicted_s"]),
                         seconds(step["measured_s"]),
                         error(step["predicted_s"], step["measured_s"]),
                         f"{result['median_relative_error'] * 100:.1f} %",
                         error(peak["predicted_bytes"], peak["measured_bytes"]) if peak else ""])
    return table("Plans run on the device: predicted beside measured",
                 ["step", "machine", "predicted", "measured", "error", "median of tasks", "memory"],
                 rows)


def training_of(folder):
    rows = []
    for name, measured in folder.find("train-*.json"):
        model = name.removeprefix("train-")
        reserved = measured.get("peak_reserved_bytes")
        allocated = measured.get("peak_allocated_bytes")
        for guess, predicted in folder.find(f"predicted-{model}-*.json"):
            rows.append([model, guess.removeprefix(f"predicted-{model}-"),
                         seconds(predicted["step_time_s"]), seconds(measured["step_time_s"]),
                         error(predicted["step_time_s"], measured["step_time_s"]),
                         gibibytes(predicted["memory"]["peak_bytes"]),
                         gibibytes(allocated) if allocated else "",
                         gibibytes(reserved) if reserved else "",
                         gibibytes(measured["device_used_bytes"]) if allocated else ""])
    return table("Whole steps of PyTorch: predicted beside measured",
                 ["model", "machine", "predicted", "measured", "error", "predicted peak",
                  "allocated", "reserved", "of the device"], rows)


def product_flops(row):
    return 2 * row["m"] * row["n"] * row["k"]


def attention_flops(row):
    """FlashAttention's count, which calibrate has, too: half where it is causal, 2.5 times in
    the backward pass."""
    forward = 4 * row["batch"] * row["heads"] * row["seq"] ** 2 * row["head_dim"]
    return forward * (0.5 if row["causal"] else 1) * (2.5 if row["pass"] == "bwd" else 1)


def rate_of(row):
    """What it did a second, in words, and as a number to compare rows of a table by."""
    took = row["time_us"] / 1e6
    if "m" in row or "seq" in row:
        flops = product_flops(row) if "m" in row else attention_flops(row)
        return flops / took, f"{flops / took / 1e12:.1f} TFLOP/s"
    moved = row.get("bytes_moved", row.get("size_bytes", 0))
    return moved / took, f"{moved / took / 1e9:.1f} GB/s"


def kernels_of(folder):
    rows = []
    for name, result in folder.find("kernels/*.json"):
        if not result["rows"]:
            rows.append([name, 0, "", "", "; ".join(result["notes"][:1])])
            continue
        best = max(result["rows"], key=lambda row: rate_of(row)[0])
        what = {key: value for key, value in best.items()
                if key not in ("device", "time_us", "low_us", "high_us", "repeats")}
        rows.append([name, result["n_rows"], rate_of(best)[1],
                     ", ".join(f"{key} {value}" for key, value in what.items()),
                     f"{min(row['time_us'] for row in result['rows']):.1f} us"])
    return table("Kernels", ["table", "rows", "best rate", "of", "shortest"], rows)


def launches_of(folder):
    rows = [[row["what"], f"{row['device_us']:.2f} us", f"{row['host_us']:.2f} us"]
            for _, result in folder.find("launch.json") for row in result["rows"]]
    return table("A launch", ["how", "a kernel's share", "on the host"], rows)


def sustained_of(folder):
    rows = []
    for _, result in folder.find("sustained.json"):
        for row in result["rows"]:
            value = lambda key, unit: f"{row[key]:.0f} {unit}" if key in row else ""
            rate = lambda key, unit: f"{row[key]:.1f} {unit}" if key in row else ""
            rows.append([row["load"], f"{row['for_s']:.0f} s", rate("first_tflops", "TFLOP/s"),
                         rate("sustained_tflops", "TFLOP/s") or rate("sustained_gbps", "GB/s"),
                         value("power_w", "W"), value("sm_clock_mhz", "MHz"),
                         value("temperature_c", "C")])
    return table("Without a pause",
                 ["load", "for", "first", "second half", "power", "clock", "temperature"], rows)


def main(path):
    if not os.path.isdir(path):
        print(f"gpu_summary.py: {path}: no such folder", file=sys.stderr)
        return 1
    folder = Folder(path)
    lines = ["# What the GPUs here do", ""]
    for name in ("gpus.csv", "version.txt"):
        if folder.text(name):
            lines += ["```", folder.text(name), "```", ""]
    for section in (parts_of, steps_of, training_of, kernels_of, launches_of, sustained_of):
        try:
            lines += section(folder)
        except (KeyError, IndexError, TypeError, ZeroDivisionError) as reason:
            folder.broken.append(f"{section.__name__.removesuffix('_of')}: unexpected {reason!r}")
    if folder.broken:
        lines += ["## Not to be read", ""] + [f"- {what}" for what in folder.broken] + [""]
    text = "\n".join(lines)
    with open(os.path.join(path, "summary.md"), "w", encoding="utf-8") as out:
        out.write(text)
    print(text)
    return 1 if folder.broken else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        print("usage: gpu_summary.py FOLDER", file=sys.stderr)
        sys.exit(2)
    sys.exit(main(sys.argv[1]))
