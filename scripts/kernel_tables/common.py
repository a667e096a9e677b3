"""What the tables of kernels have in common: devices, sources, rows, fits."""

import csv
import gzip
import math
import pathlib

import numpy as np
from scipy.optimize import minimize

AIC = ("NVIDIA aiconfigurator-core 0.12.0 (PyPI, Apache-2.0), systems/data, collected by "
       "ai-dynamo/aiconfigurator @095f58a")
DATE = "2026-11"
SIMUMAX = "MooreThreads/SimuMax configs/system @4dcaae5"

# Peak of bf16 and bandwidth as in the profiles: what the table's fractions are of.
DEVICES = {
    "a100": ("a100_sxm", "A100 SXM4 80 GB", 312e12, 2.039e12, 108),
    "h100": ("h100_sxm", "H100 SXM5 80 GB", 989.4e12, 3.35e12, 132),
    "b200": ("b200_sxm", "B200 SXM 180 GB", 2250e12, 7.672e12, 148),
    "gb300": ("gb300", "GB300 279 GB", 2500e12, 8e12, 152),
    "l40s": ("l40s", "L40S 48 GB", 362.05e12, 0.864e12, 142),
}


def rows_of(path):
    with gzip.open(path, "rt") as lines:
        yield from csv.DictReader(lines)


# Of tools/measure_gpu.py kernels, here.
OWN = pathlib.Path(__file__).resolve().parents[2] / "hardware_profiles/kernels/measured"
OWN_SOURCE = "tools/measure_gpu.py kernels, hardware_profiles/kernels/measured/{}.csv"


def own_rows(device, op):
    with open(OWN / f"{device}.csv", encoding="utf-8") as lines:
        rows = csv.DictReader(line for line in lines if not line.startswith("#"))
        return [row for row in rows if row["op"] == op]


def mean_errors(log_ratios):
    errors = np.abs(np.exp(log_ratios) - 1) * 100
    return f"{np.median(errors):.1f}/{np.percentile(errors, 90):.1f} %"


def minimized(loss, starts):
    found = [minimize(loss, start, method="Nelder-Mead", options={"maxiter": 4000}) for start in starts]
    return min(found, key=lambda result: result.fun).x


def fraction(x):
    return 1 / (1 + math.exp(-x))
