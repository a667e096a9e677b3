#!/usr/bin/env python3
"""Makes hardware_profiles/kernels/*.json of tables of measured kernels.

    scripts/distill_kernels.py MEASUREMENTS     (needs numpy and scipy)

MEASUREMENTS holds kernels/aic_gemm.csv.gz, kernels/aic_attention_prefill.csv.gz and
kernels/aic_deepep_all_to_all.csv.gz (NVIDIA's aiconfigurator-core 0.12.0, Apache-2.0) and compute/*.json
(SimuMax, cudnn-frontend, Azure). What is fitted and how curves are kept stands in hardware_profiles/kernel_data.hpp. Of several measurements of
one shape the geometric mean counts. Prints the errors of the formula, of the curves at the shapes
that were left out of them, and with each [n, k] left out in turn.
"""

import json
import pathlib
import sys

from kernel_tables.attention import attention
from kernel_tables.common import DEVICES
from kernel_tables.exchanges import exchanges
from kernel_tables.operations import operations
from kernel_tables.products import products

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main():
    measurements = pathlib.Path(sys.argv[1])
    for device, (_, name, *_) in DEVICES.items():
        table = {"schema": "shardsim/kernels/1", "name": device, "device": name,
                 "products": products(measurements, device),
                 "attention": attention(measurements, device),
                 "operations": operations(measurements, device),
                 "row_exchange": exchanges(measurements, device)}
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
