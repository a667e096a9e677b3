"""Rows of tokens that kernels of their own send to the devices of experts, and back."""

import math

import numpy as np

from kernel_tables.common import AIC, DATE, DEVICES, mean_errors, minimized, rows_of

# What DeepEP sends of a row of n numbers: 8 bits with a scale of 4 bytes for 128 of them, or bf16.
BYTES = {"dispatch": lambda hidden: hidden * (1 + 1 / 32), "combine": lambda hidden: 2 * hidden}

# Algorithm bandwidth in GB/s: rows to all devices, a device's own counted; over nodes those to all
# nodes. (kernel alone, called from PyTorch); 4096 tokens of 7168 numbers, 8 of 8 experts a device.
HYBRIDEP = "deepseek-ai/DeepEP Hybrid-EP_Implementation.md @07eea0c"
HYBRIDEP_B200 = {"fp8 dispatch": (599.27, 409.71), "bf16 dispatch": (734.95, 535.94),
                 "combine": (673.84, 530.86)}  # 8 devices, 16 multiprocessors
HYBRIDEP_H100 = {"bf16 dispatch": (71.71, 54.47), "combine": (62.95, 53.35)}  # 2 nodes, the same
TOKENS, HIDDEN, VISITED, MULTIPROCESSORS = 4096, 7168, 8, 16


def copies(experts, visited, parts):
    own = experts // parts
    return parts * (1 - math.comb(experts - own, visited) / math.comb(experts, visited))


def exchange(overhead, across, token, token_byte, row, row_byte, kind, source, note):
    return {"overhead": f"{overhead * 1e6:.1f} us", "overhead_across": f"{across * 1e6:.1f} us",
            "token": f"{token * 1e9:.1f} ns", "token_byte": f"{token_byte * 1e9:.4f} ns",
            "row": f"{row * 1e9:.1f} ns", "row_byte": f"{row_byte * 1e9:.4f} ns",
            "kind": kind, "date": DATE, "source": source, "note": note}


def deepep_rows(measurements, gpu, way):
    for row in rows_of(measurements / "kernels/aic_deepep_all_to_all.csv.gz"):
        if row["gpu"] != gpu or row["phase"] != way or row["mode"] != "normal": continue
        sizes = {key: int(row[key]) for key in
                 ("nodes", "hidden", "topk", "experts", "tokens_per_rank", "sms")}
        if sizes["experts"] >= 8 * sizes["nodes"]: yield sizes, float(row["time_s"])


# Of messages that bandwidth does not bound, on H100: the only device with several nodes.
def overhead_across(measurements, way):
    return float(np.median([time for sizes, time in deepep_rows(measurements, "h100_sxm", way)
                            if sizes["nodes"] > 1 and sizes["tokens_per_rank"] <= 4]))


def deepep(measurements, device, way):
    found = [(sizes, time) for sizes, time in deepep_rows(measurements, DEVICES[device][0], way)
             if sizes["nodes"] == 1 and sizes["tokens_per_rank"] >= 64]
    tokens, rows, size, sms, times = np.array(
        [(s["tokens_per_rank"], s["tokens_per_rank"] * copies(s["experts"], s["topk"], 8),
          BYTES[way](s["hidden"]), s["sms"], time) for s, time in found], dtype=float).T

    def formula(x):
        overhead, token, token_byte, row, row_byte, link = np.exp(x)
        work = tokens * (token + size * token_byte) + rows * (row + size * row_byte)
        return (overhead * 1e3 + np.maximum(work / sms, rows * size * 7 / 8 / link)) * 1e-9

    x = minimized(lambda x: np.mean(np.abs(np.log(formula(x) / times))),
                  [np.log([30, 250, .02, 80, .035, 330]), np.log([40, 1, .1, 80, .03, 330])])
    overhead, token, token_byte, row, row_byte, _ = np.exp(x)
    errors = mean_errors(np.log(times / formula(x)))
    return exchange(overhead * 1e-6, overhead_across(measurements, way), token * 1e-9,
                    token_byte * 1e-9, row * 1e-9, row_byte * 1e-9, "measured",
                    f"{AIC}: deepep_all_to_all",
                    f"{len(times)} rows of one node, {errors} off at the median and 90th percentile"
                    "; over nodes the overhead of H100")


def hybridep():
    rows = TOKENS * copies(64, VISITED, 8)
    bits8, bits16 = BYTES["dispatch"](HIDDEN), BYTES["combine"](HIDDEN)

    def seconds(what, size, column, table=HYBRIDEP_B200, count=rows):
        return count * size / (table[what][column] * 1e9)

    each = MULTIPROCESSORS / rows
    narrow = seconds("fp8 dispatch", bits8, 0) * each
    wide = seconds("bf16 dispatch", bits16, 0) * each
    row_byte = (wide - narrow) / (bits16 - bits8)
    row = narrow - bits8 * row_byte
    of_nodes = TOKENS * copies(128, VISITED, 2)
    tables = {}
    for way, what in (("dispatch", "bf16 dispatch"), ("combine", "combine")):
        kernel = seconds(what, bits16, 0) * each
        inside = seconds(what, bits16, 1) - seconds(what, bits16, 0)
        across = (seconds(what, bits16, 1, HYBRIDEP_H100, of_nodes) -
                  seconds(what, bits16, 0, HYBRIDEP_H100, of_nodes))
        tables[way] = exchange(inside, across, 0, 0, row, (kernel - row) / bits16, "derived",
                               HYBRIDEP, "from its bandwidths of 8 and 16 bits on B200, 8 devices; "
                               "overhead: called from PyTorch less the kernel; over nodes that of "
                               "H100 on two, which grows with their number (1.3 ms on eight)")
    return tables


def exchanges(measurements, device):
    """None where DeepEP was not measured."""
    if device not in ("h100", "b200", "gb300"): return {}
    return {"deepep": {way: deepep(measurements, device, way) for way in ("dispatch", "combine")},
            "hybridep": hybridep()}
