#!/usr/bin/env python3
"""Makes hardware_profiles/kernels/*.json of tables of measured kernels.

    scripts/distill_kernels.py MEASUREMENTS     (needs numpy and scipy)

MEASUREMENTS holds kernels/aic_gemm.csv.gz, kernels/aic_attention_prefill.csv.gz (NVIDIA's
aiconfigurator-core 0.12.0, Apache-2.0) and compute/*.json (SimuMax, cudnn-frontend, Azure). What is
fitted and how curves are kept stands in hardware_profiles/kernel_data.hpp. Of several measurements of
one shape the geometric mean counts. Prints the errors of the formula, of the curves at the shapes
that were left out of them, and with each [n, k] left out in turn.
"""

import collections
import csv
import gzip
import json
import math
import pathlib
import sys

import numpy as np
from scipy.optimize import minimize

ROOT = pathlib.Path(__file__).resolve().parent.parent
AIC = ("NVIDIA aiconfigurator-core 0.12.0 (PyPI, Apache-2.0), systems/data, collected by "
       "ai-dynamo/aiconfigurator @095f58a")
DATE = "2026-11"
REACH, WEIGHT_OF_FORMULA = 1.5, 0.5  # as in hardware_profiles/kernel_data.cpp
ROWS = [1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 512, 768, 1024, 1280, 1536, 1792, 2048, 2560,
        3072, 3584, 4096, 8192, 16384, 32768]

# Peak of bf16 and bandwidth as in the profiles: what the table's fractions are of.
DEVICES = {
    "a100": ("a100_sxm", "A100 SXM4 80 GB", 312e12, 2.039e12, 108),
    "h100": ("h100_sxm", "H100 SXM5 80 GB", 989.4e12, 3.35e12, 132),
    "b200": ("b200_sxm", "B200 SXM 180 GB", 2250e12, 7.672e12, 148),
    "gb300": ("gb300", "GB300 279 GB", 2500e12, 8e12, 152),
    "l40s": ("l40s", "L40S 48 GB", 362.05e12, 0.864e12, 142),
}
# Rate over that of bf16; bytes of an operand; which rows: cuBLASLt's. Of 8 and 4 bits TensorRT-LLM's
# time holds the kernel that quantizes the first operand: a term m k of the formula that takes the
# error of large shapes from 12 to 3 % on H100. It is fitted and left out of the table.
TYPES = {
    "bf16": (1, 2, lambda r: r["dtype"] == "bfloat16"),
    "fp8": (2, 1, lambda r: r["dtype"] == "fp8" and r["framework"] == "trtllm"),
    "fp4_e2m1": (None, 0.5625, lambda r: r["dtype"] == "nvfp4" and r["framework"] == "trtllm"),
}
FP4_RATE = {"b200": 4, "gb300": 6}


def rows_of(path):
    with gzip.open(path, "rt") as lines:
        yield from csv.DictReader(lines)


def mean_errors(log_ratios):
    errors = np.abs(np.exp(log_ratios) - 1) * 100
    return f"{np.median(errors):.1f}/{np.percentile(errors, 90):.1f} %"


def minimized(loss, starts):
    found = [minimize(loss, start, method="Nelder-Mead", options={"maxiter": 4000}) for start in starts]
    return min(found, key=lambda result: result.fun).x


def fraction(x):
    return 1 / (1 + math.exp(-x))


# --- products ---------------------------------------------------------------------------------

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
    for table in tables.values():  # a launch of the kernel that quantizes
        table["floor"] = min(table["floor"], tables["bf16"]["floor"], key=lambda t: float(t[:-3]))
    return tables


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


# --- attention --------------------------------------------------------------------------------

# Serving kernels write the cache of keys, too, which shorter ones are mostly about.
SHORTEST_QUERIES = 1024
# Seconds of an attention kernel that computes nothing: the smallest rows of A100 and H100 take 10
# to 14 us. Not fitted, since no row of training is short enough to tell.
ATTENTION_OVERHEAD = 10e-6

# heads of all sequences, queries, keys seen on average, numbers of a head, operations, seconds
def fit_attention(points, peak, sms, prologue=None):
    heads, queries, keys, numbers, flops, times = np.array(points, dtype=float).T
    spread = np.maximum(1, sms / (heads * np.ceil(queries / 128)))
    several_heads = len(set(numbers)) > 1

    def constants(x):
        return (fraction(x[0]), math.exp(x[1]) if prologue is None else prologue,
                math.exp(x[2]) if several_heads else 0.0, ATTENTION_OVERHEAD)

    def formula(c):
        return c[3] + flops / (peak * c[0]) * (1 + c[1] / keys) * (1 + c[2] / numbers) * spread

    x = minimized(lambda x: np.mean(np.abs(np.log(formula(constants(x)) / times))),
                  [[1, 5, 2], [0, 6, 3]])
    found = constants(x)
    return found, mean_errors(np.log(times / formula(found)))


def attention_table(points, peak, sms, source, about="", prologue=None):
    """With the prologue of another kernel where all rows have the same keys."""
    (efficiency, prologue, head, overhead), errors = fit_attention(points, peak, sms, prologue)
    return {"efficiency": round(efficiency, 4), "prologue": round(prologue, 1),
            "head": round(head, 1), "overhead": f"{overhead * 1e6:.3f} us", "kind": "measured",
            "date": DATE, "source": source,
            "note": f"{len(points)} rows, {errors} off at the median and 90th percentile{about}"}


def given_attention(efficiency, prologue, overhead_us, kind, source, note, head=0.0):
    return {"efficiency": efficiency, "prologue": prologue, "head": head,
            "overhead": f"{overhead_us:.3f} us", "kind": kind, "date": DATE, "source": source,
            "note": note}


def prefill_points(measurements, gpu, sources, dtype):
    points = []
    for row in rows_of(measurements / "kernels/aic_attention_prefill.csv.gz"):
        if row["gpu"] != gpu or row["dtype"] != dtype or row["window"] != "0": continue
        if row["kernel_source"] not in sources or int(row["q_len"]) < SHORTEST_QUERIES: continue
        queries, prefix = int(row["q_len"]), int(row["prefix_len"])
        keys = prefix + (queries + 1) / 2
        heads, numbers = int(row["batch"]) * int(row["q_heads"]), int(row["head_dim"])
        points.append((heads, queries, keys, numbers, 4 * heads * queries * keys * numbers,
                       float(row["time_s"])))
    return points


def cudnn_points(measurements, gpu, dtype, direction):
    points = []
    document = json.loads((measurements / "compute/cudnn_frontend_sdpa_training.json").read_text())
    for row in document["rows"]:
        if row["device"] != f"NVIDIA {gpu}" or row["dtype"] != dtype or row["pass"] != direction:
            continue
        if row["window"] is not None or row["backend"] != "cudnn": continue
        if direction == "bwd" and row["deterministic_bwd"] == "True": continue
        causal = row["mask"] == "top_left"
        keys = row["kv_seq"] / (2 if causal else 1)
        heads = row["batch"] * row["q_heads"]
        per_pair = 2 * (row["hd_qk"] + row["hd_v"]) if direction == "fwd" else (
            2 * (3 * row["hd_qk"] + 2 * row["hd_v"]))
        points.append((heads, row["q_seq"], keys, (row["hd_qk"] + row["hd_v"]) / 2,
                       per_pair * heads * row["q_seq"] * keys, row["time_ms"] * 1e-3))
    return points


def simumax_points(measurements, name, direction):
    points = []
    document = json.loads((measurements / f"compute/simumax_op_efficiency_{name}.json").read_text())
    for row in document["rows"]:
        if row["op"] != f"sdp_{direction}" or not row["qkv_contiguous"]: continue
        heads, queries = row["batch"] * row["head_num"], row["seq_len"]
        if heads < 16: continue  # too few blocks of keys for the multiprocessors
        per_pair = 2 * (row["qk_head_dim"] + row["v_head_dim"]) * (1 if direction == "fwd" else 2.5)
        # Its rates count all of the mask, of which a causal one leaves half.
        time = per_pair * heads * queries * queries / (row["achieved_tflops"] * 1e12)
        points.append((heads, queries, queries / 2, (row["qk_head_dim"] + row["v_head_dim"]) / 2,
                       per_pair * heads * queries * queries / 2, time))
    return points


CUDNN = "NVIDIA/cudnn-frontend benchmark/sdpa_benchmark_training/results/**.csv @3929da2"
SIMUMAX = "MooreThreads/SimuMax configs/system @4dcaae5"


# Dao, FlashAttention-2 (2023), section 4.1: forward and backward together 1.7 to 3.0 times as fast
# as the first and 1.3 to 2.5 times as fast as the one in Triton; the geometric means.
BEFORE_FLASH_2 = {"flash-1": math.sqrt(1.7 * 3.0), "triton": math.sqrt(1.3 * 2.5)}


def with_older(tables):
    """FlashAttention's first generation and the one in Triton, from the second."""
    for generation, slower in BEFORE_FLASH_2.items():
        tables[generation] = {
            direction: {"bf16": dict(
                of_types["bf16"], efficiency=round(of_types["bf16"]["efficiency"] / slower, 4),
                kind="derived", source="Dao, FlashAttention-2 (2023), section 4.1",
                note=f"flash-2's over {slower:.2f}, the geometric mean of the range that is named")}
            for direction, of_types in tables["flash-2"].items()}
    return tables


TRITON = "triton-lang Triton-to-tile-IR README, performance on B200 at 850 W, 1800 MHz"


def tutorial_points(measurements, kernel, direction):
    document = json.loads((measurements / "compute/b200_triton_tileir_attention.json").read_text())
    points = []
    for row in document["rows"]:
        backend = "nvidia" if direction == "fwd" else "tileir"
        if (row["backend"], row["kernel"], row["pass_"]) != (backend, kernel, direction): continue
        heads, queries = row["batch"] * row["heads"], row["seq"]
        keys = queries / (2 if row["causal"] else 1)
        flops = (4 if direction == "fwd" else 10) * heads * queries * keys * row["head_dim"]
        points.append((heads, queries, keys, row["head_dim"], flops,
                       flops / (row["tflops"] * 1e12)))
    return points


def attention(measurements, device):
    gpu, _, peak, _, sms = DEVICES[device]
    prefill = lambda sources, dtype: prefill_points(measurements, gpu, sources, dtype)
    aic = f"{AIC}: attention, causal prefill"
    if device == "a100":
        forward = attention_table(prefill(["flash_attention"], "bfloat16"), peak, sms, aic)
        backward = attention_table(simumax_points(measurements, "a100_pcie", "bwd"), peak, sms,
                                   f"{SIMUMAX}/a100_pcie.json",
                                   "; A100 PCIe, with the prologue of the forward pass",
                                   forward["prologue"])
        flash2 = {"forward": {"bf16": forward}, "backward": {"bf16": backward}}
        return with_older({"flash-2": flash2, "cudnn": flash2})
    if device == "h100":
        flash3 = attention_table(prefill(["fa3"], "bfloat16"), peak, sms, aic)
        flash3_fp8 = attention_table(prefill(["fa3"], "fp8"), 2 * peak, sms, aic)
        tables = {}
        for dtype, name, rate in (("bf16", "bfloat16", 1), ("fp8", "fp8", 2)):
            for direction in ("fwd", "bwd"):
                tables[direction, dtype] = attention_table(
                    cudnn_points(measurements, "H200", name, direction), rate * peak, sms, CUDNN,
                    "; H200, which has the cores of H100")
        cudnn = {"forward": {d: tables["fwd", d] for d in ("bf16", "fp8")},
                 "backward": {d: tables["bwd", d] for d in ("bf16", "fp8")}}
        flash2 = given_attention(
            0.351, 245.0, 10, "measured", "Azure/AI-benchmarking-guide Azure_Results @8fd0c6e",
            "327.9 TFLOP/s at sequence 8192, head size 128, with the prologue that it has on A100")
        flash2_backward = given_attention(
            0.334, 245.0, 10, "derived", "Dao, FlashAttention-2 (2023), section 4.1",
            "both directions up to 335 TFLOP/s on H100, less the forward pass at its rate")
        return with_older({
            "cudnn": cudnn,
            "flash-2": {"forward": {"bf16": flash2}, "backward": {"bf16": flash2_backward}},
            "flash-3": {"forward": {"bf16": flash3, "fp8": flash3_fp8},
                        "backward": cudnn["backward"]}})
    if device in ("b200", "gb300"):
        tables = {}
        name = "GB200" if device == "b200" else "GB300"
        at = 2500e12
        for dtype, named, rate in (("bf16", "bfloat16", 1), ("fp8", "fp8", 2)):
            for direction in ("fwd", "bwd"):
                tables[direction, dtype] = attention_table(
                    cudnn_points(measurements, name, named, direction), rate * at, 152, CUDNN,
                    f"; {name}")
        generations = {"cudnn": {"forward": {d: tables["fwd", d] for d in ("bf16", "fp8")},
                                 "backward": {d: tables["bwd", d] for d in ("bf16", "fp8")}}}
        for generation, kernel in (("flash-2", "flash2_fp16"), ("triton", "triton_fp16")):
            generations[generation] = {
                of: {"bf16": attention_table(tutorial_points(measurements, kernel, direction),
                                             2250e12, 148, TRITON, "; fp16")}
                for of, direction in (("forward", "fwd"), ("backward", "bwd"))}
        return generations
    forward = attention_table(prefill(["flashinfer"], "bfloat16"), peak, sms, aic)
    return {"flash-2": {"forward": {"bf16": forward}, "backward": {
        "bf16": dict(forward, kind="estimate", note="forward's: no table of backward passes")}}}


# --- products of experts ----------------------------------------------------------------------

def grouped(measurements, device):
    """Of SimuMax on B200: forward and input gradients; weight gradients are another kernel."""
    if device != "b200": return {}
    peak = DEVICES[device][2]
    document = json.loads((measurements / "compute/simumax_op_efficiency_b200.json").read_text())
    points = []
    for row in document["rows"]:
        if row["op"] != "group_matmul" or row["stage"] == "bwd_grad_w": continue
        flops = 2 * row["ng"] * row["M"] * row["N"] * row["K"]
        points.append((row["M"], flops, flops / (row["achieved_tflops"] * 1e12)))
    rows, flops, times = np.array(points, dtype=float).T

    def formula(c):
        return c[2] + flops / (peak * c[0]) * (1 + c[1] / rows)

    def constants(x):
        return fraction(x[0]), math.exp(x[1]), math.exp(x[2]) * 1e-6

    x = minimized(lambda x: np.mean(np.abs(np.log(formula(constants(x)) / times))), [[0, 5, 3]])
    efficiency, side, overhead = constants(x)
    errors = mean_errors(np.log(times / formula(constants(x))))
    return {"bf16": {"efficiency": round(efficiency, 4), "side": round(side, 1),
                     "overhead": f"{overhead * 1e6:.3f} us", "kind": "measured", "date": DATE,
                     "source": f"{SIMUMAX}/b200_bf16_ceperm.json",
                     "note": f"{len(points)} rows of Transformer Engine's grouped products, forward "
                             f"and input gradients, {errors} off at the median and 90th percentile"}}


# --- operations that memory bounds ------------------------------------------------------------

NORMS = "NVIDIA/cudnn-frontend benchmark/norms/results/**.csv @3929da2"
# Eager PyTorch's there has a kernel of its own forward, as since torch 2.8: left out.
STACKS = {"cudnn": "transformer-engine", "torch_compile": "compiled"}
NORM_DEVICES = {"h100": ("H200", 4.8e12), "b200": ("GB200", 8e12), "gb300": ("GB300", 8e12)}


NEUSIGHT = "sitar-lab/NeuSight scripts/asplos/data/dataset @6945927"
# What the stacks' lists of kernels (strategies/compile/kernel_lists.cpp) are made of in eager PyTorch.
ELEMENTWISE = ["add", "multiply", "silu", "gelu", "relu", "relu_squared", "rope", "rms_norm"]


def operations(measurements, device):
    tables = collections.defaultdict(dict)
    add_eager(measurements, tables)
    if device in NORM_DEVICES: add_norms(measurements, tables, *NORM_DEVICES[device])
    return tables


def add_eager(measurements, tables):
    """Of eager PyTorch on A100, whose shares of the bandwidth all devices are given."""
    shares = collections.defaultdict(list)
    for row in rows_of(measurements / "kernels/neusight_fp32_vector_ops.csv.gz"):
        if row["gpu"] != "NVIDIA A100-PCIE-40GB" or float(row["min_bytes"]) < 2e8: continue
        share = float(row["min_bytes"]) / 1.555e12 / float(row["time_s"])
        shares["norm" if row["op"] == "ln" else "elementwise"].append(share)
    for function in ELEMENTWISE:
        for direction in ("", "_backward"):
            tables[function + direction]["eager"] = operation_table(
                shares["elementwise"], NEUSIGHT, "; elementwise, fp32, 0.2 GB and more, A100 PCIe")
    for direction in ("", "_backward"):
        tables["layer_norm" + direction]["eager"] = operation_table(
            shares["norm"], NEUSIGHT, "; layer norm forward, fp32, 0.2 GB and more, A100 PCIe")


def operation_table(shares, source, about):
    return {"efficiency": round(min(1.0, float(np.median(shares))), 3), "overhead": "2 us",
            "kind": "measured", "date": DATE, "source": source,
            "note": f"median of {len(shares)} rows, 10th to 90th percentile "
                    f"{np.percentile(shares, 10):.2f} to {np.percentile(shares, 90):.2f}{about}"}


def add_norms(measurements, tables, name, bandwidth):
    shares = collections.defaultdict(list)
    document = json.loads((measurements / "compute/cudnn_frontend_norms.json").read_text())
    for row in document["rows"]:
        if row["device"] != f"NVIDIA {name}" or row["rows"] * row["cols"] < 2**24: continue
        if row["type"] != "rms_norm" or row["cols"] < 1024: continue
        if row["backend"] not in STACKS: continue
        for direction, key in (("", "fwd_gb_s"), ("_backward", "bwd_gb_s")):
            shares[direction, STACKS[row["backend"]]].append(row[key] * 1e9 / bandwidth)
    for (direction, stack), found in shares.items():
        table = operation_table(found, NORMS, f"; RMSNorm of 2^24 numbers and more on {name}")
        for norm in ("rms_norm", "layer_norm"): tables[norm + direction][stack] = table


def main():
    measurements = pathlib.Path(sys.argv[1])
    for device, (_, name, *_) in DEVICES.items():
        table = {"schema": "shardsim/kernels/1", "name": device, "device": name,
                 "products": products(measurements, device),
                 "grouped": grouped(measurements, device),
                 "attention": attention(measurements, device),
                 "operations": operations(measurements, device)}
        for function, stacks in table["operations"].items():
            for stack, one in stacks.items(): print(device, function, stack, one["efficiency"])
        for generation, directions in table["attention"].items():
            for direction, of_types in directions.items():
                for dtype, one in of_types.items():
                    print(device, generation, direction, dtype, one["efficiency"], one["prologue"],
                          one["head"], one["overhead"], one["note"])
        path = ROOT / "hardware_profiles/kernels" / f"{device}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
