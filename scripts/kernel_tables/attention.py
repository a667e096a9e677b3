"""Attention by kernel generation and direction: a formula for each."""

import json
import math

import numpy as np

from kernel_tables.common import (AIC, DATE, DEVICES, OWN_SOURCE, SIMUMAX, fraction, mean_errors,
                                  minimized, own_rows, rows_of)

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


def own_points(device, direction, kernel="sdpa"):
    """Of cuDNN as PyTorch calls it, or of its FlashAttention 2 ("sdpa_flash"), as `cudnn_points`."""
    points = []
    for row in own_rows(device, f"{kernel}_{direction}"):
        heads, queries = int(row["batch"]) * int(row["heads"]), int(row["seq"])
        keys = queries / (2 if row["causal"] == "1" else 1)
        numbers = int(row["head_dim"])
        flops = (4 if direction == "fwd" else 10) * heads * queries * keys * numbers
        points.append((heads, queries, keys, numbers, flops, float(row["time_us"]) * 1e-6))
    return points


# Of cuDNN's rates on H100 what is left in steps, where products beside it keep the clock low: medians
# of 1/1.18 and 1/1.22 in six steps of Megatron-Core, backward with the kernels before and after
# (docs/gpu.md); alone without a pause 1/1.16 and 1/1.12. Measured in bf16, taken for fp8, too.
IN_STEPS = {"fwd": 0.85, "bwd": 0.82}


def in_steps(table, direction):
    share = IN_STEPS[direction]
    return dict(table, efficiency=round(table["efficiency"] * share, 4),
                note=f"{table['note']}; {share} of it, as in steps (docs/gpu.md)")


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
                points = cudnn_points(measurements, "H200", name, direction)
                source, about = CUDNN, "; H200, which has the cores of H100"
                if dtype == "bf16":
                    points += own_points(device, direction)
                    source = f"{CUDNN}; {OWN_SOURCE.format(device)}"
                    about = "; H200, which has the cores of H100, and H100"
                table = attention_table(points, rate * peak, sms, source, about)
                tables[direction, dtype] = in_steps(table, direction)
        cudnn = {"forward": {d: tables["fwd", d] for d in ("bf16", "fp8")},
                 "backward": {d: tables["bwd", d] for d in ("bf16", "fp8")}}
        flash2, flash2_backward = [
            attention_table(own_points(device, direction, "sdpa_flash"), peak, sms,
                            OWN_SOURCE.format(device), "; without a pause, PyTorch 2.11")
            for direction in ("fwd", "bwd")]
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
                # GB300, whose limit is higher by 200 W and more, is left as it is.
                if device == "b200":
                    tables[direction, dtype] = in_steps(tables[direction, dtype], direction)
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
