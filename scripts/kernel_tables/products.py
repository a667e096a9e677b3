"""Products by shape: a formula, and what was measured over it along m for every [n, k]."""

import collections
import json
import math

import numpy as np

from kernel_tables.common import (AIC, DATE, DEVICES, OWN_SOURCE, SIMUMAX, fraction, mean_errors,
                                  minimized, own_rows, rows_of)

REACH, WEIGHT_OF_FORMULA = 1.5, 0.5  # as in hardware_profiles/kernel_data.cpp
ROWS = [1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 512, 768, 1024, 1280, 1536, 1792, 2048, 2560,
        3072, 3584, 4096, 8192, 16384, 32768]
# Rate over that of bf16; bytes of an operand; which rows: cuBLASLt's. Of 8 and 4 bits TensorRT-LLM's
# time holds the kernel that quantizes the first operand: a term m k of the formula that takes the
# error of large shapes from 12 to 3 % on H100. It is fitted and left out of the table.
TYPES = {
    "bf16": (1, 2, lambda r: r["dtype"] == "bfloat16"),
    "fp8": (2, 1, lambda r: r["dtype"] == "fp8" and r["framework"] == "trtllm"),
    "fp4_e2m1": (None, 0.5625, lambda r: r["dtype"] == "nvfp4" and r["framework"] == "trtllm"),
}
FP4_RATE = {"b200": 4, "gb300": 6}


Formula = collections.namedtuple("Formula", "floor flop_efficiency byte_efficiency depth quantizing")


def product_formula(formula, shapes, peak, bandwidth, operand_bytes):
    m, n, k = shapes.T
    computing = 2 * m * n * k / (peak * formula.flop_efficiency) * (1 + formula.depth / k)
    moving = (operand_bytes * (m * k + n * k) + 2 * m * n) / (bandwidth * formula.byte_efficiency)
    quantizing = m * k * (2 + operand_bytes) / bandwidth * formula.quantizing
    return formula.floor + np.maximum(computing, moving) + quantizing


def fit_products(shapes, times, peak, bandwidth, operand_bytes, quantizes):
    def formula(x):
        return Formula(math.exp(x[0]) * 1e-6, fraction(x[1]), fraction(x[2]), math.exp(x[3]),
                       math.exp(x[4]) if quantizes else 0)

    def loss(x):
        times_of = product_formula(formula(x), shapes, peak, bandwidth, operand_bytes)
        return np.mean(np.abs(np.log(times_of / times)))

    return formula(minimized(loss, [[1, 1, 1, 1, 1], [2, 1, 1, 5, 0]]))


def interpolated(curves, pairs, log_pairs, out, log_m):
    """With the curve of pair `out` left out."""
    distances = np.sqrt(((log_pairs - log_pairs[out]) ** 2).sum(1))
    total, weights = np.zeros(len(log_m)), np.full(len(log_m), WEIGHT_OF_FORMULA)
    for i in np.where((distances < REACH) & (distances > 0))[0]:
        weight = (REACH / distances[i] - 1) ** 2
        total += weight * np.interp(log_m, *curves[pairs[i]])
        weights += weight
    return total / weights


def products(measurements, device):
    gpu, _, peak, bandwidth, _ = DEVICES[device]
    tables = {}
    times = collections.defaultdict(lambda: collections.defaultdict(list))
    for row in rows_of(measurements / "kernels/aic_gemm.csv.gz"):
        for dtype, (_, _, wanted) in TYPES.items():
            if row["gpu"] == gpu and wanted(row):
                shape = (int(row["m"]), int(row["n"]), int(row["k"]))
                times[dtype][shape].append(math.log(float(row["time_s"])))
    for dtype, of_type in times.items():
        rate, operand_bytes, _ = TYPES[dtype]
        rate = rate or FP4_RATE[device]
        shapes = np.array(sorted(of_type), dtype=float)
        measured = np.exp([np.mean(of_type[tuple(map(int, shape))]) for shape in shapes])
        constants = fit_products(shapes, measured, peak * rate, bandwidth, operand_bytes,
                                 quantizes=operand_bytes < 2)
        if constants.quantizing < 1:  # faster than memory is: there is no such kernel
            constants = fit_products(shapes, measured, peak * rate, bandwidth, operand_bytes,
                                     quantizes=False)
        rounded = Formula(round(constants[0], 9), round(constants[1], 4), round(constants[2], 4),
                          round(constants[3], 1), round(constants[4], 3))
        logs = np.log(measured / product_formula(rounded, shapes, peak * rate, bandwidth,
                                                 operand_bytes))
        tables[dtype] = product_table(shapes, logs, rounded, sum(map(len, of_type.values())))
        left_out = left_out_errors(shapes, logs)
        large = shapes.min(1) >= 1024
        note = (f"{tables[dtype].pop('count')} rows; CUDA graphs in short runs, weights in "
                f"[n, k]; the formula alone is {mean_errors(logs)} off at the median and 90th "
                f"percentile, {mean_errors(logs[large])} where no size is below 1024; a left out "
                f"[n, k] {mean_errors(left_out)} and {mean_errors(left_out[large])}")
        if rounded.quantizing > 0:
            note += (f"; without the kernel that quantizes an operand, which the rows hold: "
                     f"{1 / rounded.quantizing:.2f} of the bandwidth, and a launch")
        tables[dtype]["note"] = note
        print(device, dtype, rounded, note)
    if device == "h100": tables["bf16"]["unaligned"] = unaligned(device, peak)
    if device == "a100": tables["bf16"]["unaligned_batch"] = UNALIGNED_HEADS
    for table in tables.values():
        table["adding"] = adding(measurements, device)
    for table in tables.values():  # a launch of the kernel that quantizes
        table["floor"] = min(table["floor"], tables["bf16"]["floor"], key=lambda t: float(t[:-3]))
    return tables


UNALIGNED_HEADS = {
    "value": 0.024, "kind": "estimate", "date": DATE,
    "source": "bigscience-workshop/bigscience train/tr11-176B-ml/chronicles-prequel.md @9e64ede",
    "note": "fitted to 7 of its steps with unfused heads of 150 and 108 numbers, which take 1.3 times as "
            "long as those of 144 and 224; the other half of such steps was not looked at"}

# Whose products of weights' gradients, added to fp32, were measured beside the same without: of a
# device that lies between two, both.
ADDING = {"a100": ["a100_pcie"], "l40s": ["a100_pcie"], "h100": ["a100_pcie", "b200"],
          "b200": ["b200"], "gb300": ["b200"]}
BANDWIDTH = {"a100_pcie": 1.935e12, "b200": 7.672e12}


def adding(measurements, device):
    """Of the time that memory takes for 6 more bytes a number of the result, what is not hidden."""
    shares = [adding_measured(measurements, measured) for measured in ADDING[device]]
    return {"value": round(sum(shares) / len(shares), 2), "kind": "measured" if device in (
        "a100", "b200") else "derived", "date": DATE, "source": SIMUMAX,
            "note": "matmul, NT and added to fp32 against TN and written in bf16, the median over "
                    f"all shapes, of {' and '.join(ADDING[device])}"}


def adding_measured(measurements, measured):
    with open(measurements / f"compute/simumax_op_efficiency_{measured}.json",
              encoding="utf-8") as file:
        rows = [row for row in json.load(file)["rows"] if row["op"] == "matmul"]
    times = collections.defaultdict(list)  # of one product's shape, whichever way round
    for row in rows:
        sizes = tuple(sorted((row["m"], row["k"], row["n"])))
        seconds = 2 * sizes[0] * sizes[1] * sizes[2] / (row["achieved_tflops"] * 1e12)
        kind = (row["layout"], row["out_dtype"])
        times[(sizes, kind)].append((seconds, row["m"] * row["n"]))
    shares = []
    for (sizes, kind), added in times.items():
        plain = times.get((sizes, ("TN", "bf16")))
        if kind != ("NT", "fp32") or not plain: continue
        more = np.mean([one[0] for one in added]) - np.mean([one[0] for one in plain])
        shares.append(more / (6 * added[0][1] / BANDWIDTH[measured]))
    return float(np.median(shares))


def unaligned(device, peak):
    """Of all rows together: each is another of a layer's three products."""
    rows = own_rows(device, "gemm_unaligned")
    flops = sum(2 * int(row["m"]) * int(row["n"]) * int(row["k"]) for row in rows)
    seconds = sum(float(row["time_us"]) for row in rows) * 1e-6
    return {"value": round(flops / seconds / peak, 3), "kind": "measured", "date": DATE,
            "source": OWN_SOURCE.format(device),
            "note": "forward, for inputs and for weights, 50257 x 768, 8192 tokens: cuBLAS takes "
                    "CUTLASS kernels of an earlier architecture"}


def curves_of(shapes, logs):
    curves = {}
    for n, k in sorted({(n, k) for _, n, k in shapes}):
        chosen = (shapes[:, 1] == n) & (shapes[:, 2] == k)
        curves[(n, k)] = (np.log(shapes[chosen, 0]), logs[chosen])
    return curves


def left_out_errors(shapes, logs):
    curves = curves_of(shapes, logs)
    pairs = sorted(curves)
    log_pairs = np.log(np.array(pairs))
    errors = np.zeros(len(logs))
    for i, (n, k) in enumerate(pairs):
        chosen = (shapes[:, 1] == n) & (shapes[:, 2] == k)
        log_m = np.log(shapes[chosen, 0])
        errors[chosen] = logs[chosen] - interpolated(curves, pairs, log_pairs, i, log_m)
    return errors


def product_table(shapes, logs, constants, count):
    lines = []
    for (n, k), (log_m, ratios) in curves_of(shapes, logs).items():
        at_rows = np.interp(np.log(ROWS), log_m, ratios)
        numbers = [int(n), int(k)] + [int(round(1000 * ratio)) for ratio in at_rows]
        lines.append(" ".join(map(str, numbers)))
    return {"floor": f"{constants[0] * 1e6:.3f} us", "flop_efficiency": constants[1],
            "byte_efficiency": constants[2], "depth": constants[3], "rows": ROWS, "curves": lines,
            "kind": "measured", "date": DATE, "source": f"{AIC}: gemm_perf", "count": count}
