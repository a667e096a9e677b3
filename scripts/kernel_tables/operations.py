"""Operations that memory bounds."""

import collections
import json

import numpy as np

from kernel_tables.common import AIC, DATE, DEVICES, OWN_SOURCE, SIMUMAX, own_rows, rows_of

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
    if device == "h100": add_own(tables, device)
    add_transformer_engine(measurements, tables, device)
    add_quantizing(measurements, tables, device)
    if device == "h100": add_megatron(tables, device)
    add_scans(tables, device)
    if device != "h100": add_shares_of_h100(measurements, tables, device)
    return tables


# Kernels of a block for each row read it in full once more when it does not fit their registers: one
# row's length decides what they reach. Vocabularies are longer than any that was measured.
LONG_ROW = 16384


def add_shares_of_h100(measurements, tables, device):
    """What was measured on H100 alone. The share of the bandwidth that a kernel of eager PyTorch reaches
    is much the same on devices of several generations: layer norm 0.577 of V100's, 0.595 of A100's
    and 0.586 of H100's, softmax of long rows in fp32 0.433, 0.454 and (its logarithm) 0.464."""
    shares = [float(row["min_bytes"]) / 1.555e12 / float(row["time_s"])
              for row in rows_of(measurements / "kernels/neusight_fp32_vector_ops.csv.gz")
              if row["gpu"] == "NVIDIA A100-PCIE-40GB" and row["op"] == "softmax" and
              float(row["min_bytes"]) >= 2e8 and int(float(row["cols"])) >= LONG_ROW]
    tables["log_softmax"]["eager"] = operation_table(
        shares, NEUSIGHT, f"; softmax of rows of {LONG_ROW} and more, fp32, A100 PCIe")
    for function, stacks in operations(measurements, "h100").items():
        if function.startswith("softmax"): continue  # of bf16; what else has one here is in fp32
        for stack, table in stacks.items():
            if stack in tables[function]: continue
            tables[function][stack] = {
                **table, "kind": "derived",
                "note": f"the share of the bandwidth that H100 reaches: {table['note']}"}


# Shares of the peak in bf16 that Mamba 2's chunks reach, forward and backward, where tables have none.
# Steps of mamba_ssm's Mamba 2 of 1.3 billion, 4 sequences of 4096, take 1289 ms on A100, 552 ms on
# H200 and 366 ms on GB200 (state-spaces/mamba issue 904: 102.5, 239.2 and 360.4 TFLOP/s, six operations
# a parameter and token). Their products, norms in one kernel, casts, sums, convolutions, loss and AdamW
# are 752, 262 and 141 ms by the other tables; the scans of 48 layers are the rest, 11.2, 6.0 and 4.7 ms
# each. Forward of GB200: 0.75 of an H200's time, as the forward kernel of Mamba 3 there.
SCANS = {"a100": (0.1, 0.069), "h100": (0.1, 0.036), "l40s": (0.1, 0.036), "b200": (0.058, 0.021),
         "gb300": (0.058, 0.021)}


def add_scans(tables, device):
    """Mamba 2's chunks as Triton has them: five kernels forward, on one H100 1.07e7 to 1.29e7 tokens
    a second of 128 heads of 64, state of 128, in chunks of 256, 4096 tokens and more: 8.45 MFLOP and
    50 kB a token as workloads/graph counts them."""
    measured = device == "h100"
    vllm = "vllm-project/vllm pull request 27299, mamba_ssm's kernels"
    step = "state-spaces/mamba issue 904, Mamba 2 of 1.3 billion on A100, H200 and GB200"
    forward_share, backward_share = SCANS[device]
    table = {"efficiency": 0.9, "flop_efficiency": forward_share, "overhead": "2 us",
             "kind": "measured" if measured else "derived", "date": DATE, "source": vllm,
             "note": "forward on H100" if measured else "the share of the peak that an H100 reaches"}
    if forward_share != SCANS["h100"][0]:
        table.update(source=step, note="0.75 of the time on H200, as Mamba 3's forward kernel")
    backward = {**table, "flop_efficiency": backward_share, "kind": "derived", "source": step,
                "note": "what other kernels leave of a step; an H100's share"
                        if device == "l40s" else "what other kernels leave of a step"}
    for stack in ("eager", "compiled", "transformer-engine"):
        tables["chunked_scan"][stack] = table
        tables["chunked_scan_backward"][stack] = backward


# Who has measured what Megatron's kernels reach of the bandwidth, in its own words: all that memory
# bounds ("default") and permutations of rows; with the bandwidth of the device measured.
SIMUMAX_DEVICES = {"a100": ["a100_pcie"], "b200": ["b200"], "gb300": ["b200"],
                   "h100": ["a100_pcie", "b200"]}
# Of Megatron-LM's own times of a layer of experts on 8 H100 (tests/functional_tests/test_cases/
# common/moe_perf/baseline.json @d98e8a6): what its all-to-all dispatcher, which copies rows once more
# on each way, takes over DeepEP's, less the difference of their exchanges: 0.47 GB twice in 0.6 ms.
MOE_PERF_H100 = {"efficiency": 0.8, "overhead": "2 us", "kind": "derived", "date": DATE,
                 "source": "NVIDIA/Megatron-LM moe_perf/baseline.json @d98e8a6",
                 "note": "permutations of rows of 14 kB, 32 experts on 8 devices, forward: the "
                         "difference of two dispatchers"}
SIMUMAX_BANDWIDTH = {"a100_pcie": 1.935e12, "b200": 7.672e12}
ROWS_MOVED = ["dispatch", "combine", "dispatch_backward", "combine_backward"]


def simumax_share(measurements, device, name):
    path = measurements / f"compute/simumax_op_efficiency_{device}.json"
    op = json.loads(path.read_text())["hardware"]["memory_bandwidth_ops"][name]
    return op["efficient_factor"] * op["gbps"] * 1e9 / SIMUMAX_BANDWIDTH[device]


def simumax_table(measurements, device, name, about):
    measured = SIMUMAX_DEVICES[device]
    shares = [simumax_share(measurements, one, name) for one in measured]
    return {"efficiency": round(sum(shares) / len(shares), 3), "overhead": "2 us",
            "kind": "measured" if len(measured) == 1 else "derived", "date": DATE,
            "source": SIMUMAX, "note": f"{about} of Megatron on {' and '.join(measured)}"}


def add_transformer_engine(measurements, tables, device):
    """Elementwise kernels: on H100 as measured here in eager PyTorch, which are such ones, too."""
    if device not in SIMUMAX_DEVICES: return
    for function in ELEMENTWISE:
        for direction in ("", "_backward"):
            name = function + direction
            if "transformer-engine" in tables[name] or name.startswith("rms_norm"): continue
            own = tables[name]["eager"] if device == "h100" else None
            tables[name]["transformer-engine"] = own or simumax_table(
                measurements, device, "default", "what memory bounds,")
    for name in ROWS_MOVED:
        table = (MOE_PERF_H100 if device == "h100" else
                 simumax_table(measurements, device, "permute_fwd", "permutations of rows,"))
        for stack in ("transformer-engine", "eager"): tables[name][stack] = table


QUANTIZING_GPUS = {"h100": "h100_sxm", "b200": "b200_sxm", "gb300": "gb300"}


def add_quantizing(measurements, tables, device):
    """A kernel that quantizes to 8 bits with a scale that is there: 2 bytes read and 1 written."""
    if device not in QUANTIZING_GPUS: return
    bandwidth = DEVICES[device][3]
    shares = []
    for row in rows_of(measurements / "kernels/aic_quantize_memory_bound.csv.gz"):
        if row["gpu"] != QUANTIZING_GPUS[device] or row["framework"] != "trtllm": continue
        numbers = int(row["m"]) * int(row["k"])
        if row["op"] != "scale_matrix" or numbers < 2**24: continue
        shares.append(numbers * 3 / bandwidth / float(row["time_s"]))
    tables["cast"]["transformer-engine"] = operation_table(
        shares, f"{AIC}: quantize_memory_bound", "; TensorRT-LLM, scale_matrix, 2^24 numbers and more")


# What was measured in steps of Megatron-Core on Transformer Engine, and what it is here. All kernels
# of its cross entropy count as one: rates of the casts before and after are others' too.
IN_MEGATRON = {"swiglu": ["multiply"], "swiglu_backward": ["multiply_backward"],
               "rope": ["rope"], "rope_backward": ["rope_backward"],
               "cross_entropy": ["log_softmax", "log_softmax_backward", "nll_loss",
                                 "nll_loss_backward"]}
# Of 40 bytes of a logit that a step's kernels move 12 are casts', at the device's usual rate.
CASTS, USUAL = 12 / 40, 0.887


def add_megatron(tables, device):
    for op, functions in IN_MEGATRON.items():
        rows = own_rows(device, f"megatron_{op}")
        shares = [float(row["bytes_moved"]) / DEVICES[device][3] / float(row["time_us"]) * 1e6
                  for row in rows]
        if op == "cross_entropy":
            shares = [(1 - CASTS) / (1 / share - CASTS / USUAL) for share in shares]
        table = operation_table(shares, OWN_SOURCE.format(device), f"; {op} in Megatron-Core's steps")
        for function in functions: tables[function]["transformer-engine"] = table


# Functions whose kernels in eager PyTorch are alike, by the one that was measured.
MEASURED = {"add": ["add", "relu", "relu_squared", "rope", "rms_norm"], "multiply": ["multiply"],
            "silu": ["silu"], "gelu": ["gelu"], "layer_norm": ["layer_norm"],
            "softmax": ["softmax"], "log_softmax": ["log_softmax"], "cast": ["cast"],
            "log_softmax_backward": ["log_softmax_backward"], "adamw": ["adamw", "adam"]}


def add_own(tables, device):
    """Of eager PyTorch; tensors of 0.1 GB and more, of which no cache holds much."""
    bandwidth = DEVICES[device][3]
    for op, functions in MEASURED.items():
        dtype = own_rows(device, op)[0]["dtype"]
        shares = [float(row["bytes_moved"]) / bandwidth / float(row["time_us"]) * 1e6
                  for row in own_rows(device, op) if float(row["bytes_moved"]) > 1e8]
        table = operation_table(shares, OWN_SOURCE.format(device), f"; {op}, {dtype}, 0.1 GB and more")
        is_measured_both_ways = op.startswith("log_softmax")
        for function in functions:
            for direction in ("", "_backward"):
                if direction and (op == "adamw" or is_measured_both_ways): continue
                tables[function + direction]["eager"] = table
            if op == "adamw": tables[function]["compiled"] = table


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
