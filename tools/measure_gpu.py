#!/usr/bin/env python3
"""Measures what a GPU's kernels, launches, clocks and allocator do, with PyTorch alone.

    python measure_gpu.py kernels -o FOLDER      products, attention, norms, ... by shape
    python measure_gpu.py launch -o launch.json  what a launch takes, eager and in a graph
    python measure_gpu.py sustained -o FILE      loads without a pause: rate, power and clock
    python measure_gpu.py train CONFIG -o FILE   a whole step of a model: time and memory

`kernels` writes one table a class: products.json, attention-forward.json, ... as `shardsim calibrate`
reads published tables of kernels (measurements/kernel_table.hpp). A time is the median over repeats
of one call between two CUDA events, over inputs that change from call to call so that no cache holds
them. Shapes come in the order of their use; when --seconds are over, what is measured is written and
the table says that it is not whole.

--device cpu runs the same code without a GPU, with shapes of a thousandth: for tests.
"""

import argparse
import json
import math
import os
import statistics
import sys
import time

import torch

from gpu_clock import Clock, about, query_gpu, write
from gpu_kernels import kernels
from gpu_power import sustained


# ---- launches -------------------------------------------------------------------------------

def launch(arguments):
    clock = Clock(arguments.device, arguments.seconds)
    small = torch.zeros(32, device=arguments.device)
    count = 1000

    def many():
        for _ in range(count):
            small.add_(1)

    many()
    clock.synchronize()
    rows = []

    def record(what, call, times=10):
        host, whole = [], []
        for _ in range(times):
            begin = time.perf_counter()
            taken = clock.once(call)
            host.append((time.perf_counter() - begin) / count)
            whole.append(taken / count)
        rows.append({"what": what, "device_us": statistics.median(whole) * 1e6,
                     "host_us": statistics.median(host) * 1e6})

    record("eager", many)
    if arguments.device == "cuda":
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            many()
        record("graph", graph.replay)
    write({"id": "launch", "hardware": about(arguments.device),
           "notes": [f"a chain of {count} kernels over 32 elements; a kernel's share"],
           "n_rows": len(rows), "rows": rows}, arguments.output)


# ---- a whole step ---------------------------------------------------------------------------

def without_dropout(fields, defaults):
    """Dropout is not predicted: every rate of it is 0, whatever the architecture calls it
    (resid_pdrop, attention_dropout, hidden_dropout_prob, layerdrop). `defaults` of what a
    config.json leaves out."""
    is_rate = lambda value: isinstance(value, (int, float)) and not isinstance(value, bool)
    return {**fields, **{key: 0.0 for key, value in {**defaults, **fields}.items()
                         if "drop" in key and is_rate(value)}}


def kernels_of(step, clock):
    """[name, launches, microseconds] of every kernel of a step, the longest first; of a CPU none."""
    profiler = torch.profiler
    with profiler.profile(activities=[profiler.ProfilerActivity.CPU,
                                      profiler.ProfilerActivity.CUDA]) as trace:
        step()
        clock.synchronize()
    rows = [[event.key[:160], event.count, event.self_device_time_total]
            for event in trace.key_averages() if event.self_device_time_total > 0
            and str(event.device_type).endswith("CUDA")]
    return sorted(rows, key=lambda row: -row[2])


def train(arguments):
    """A step of the model of a config.json in bf16 throughout, AdamW fused, attention by SDPA; the
    kernels that it launches by name, with how often and for how long."""
    import transformers

    with open(arguments.config, encoding="utf-8") as file:
        fields = json.load(file)
    if arguments.layers:
        fields["n_layer" if "n_layer" in fields else "num_hidden_layers"] = arguments.layers
    kind = transformers.CONFIG_MAPPING[fields.pop("model_type")]
    fields = without_dropout(fields, kind().to_dict())
    with torch.device(arguments.device):
        model = transformers.AutoModelForCausalLM.from_config(
            kind(**fields), attn_implementation="sdpa", dtype=torch.bfloat16)
    model.train()
    if arguments.rematerialization == "full":
        model.gradient_checkpointing_enable({"use_reentrant": False})
    if arguments.compile:
        model.compile()
    optimizer = torch.optim.AdamW(model.parameters(), fused=arguments.device == "cuda")
    tokens = torch.randint(0, fields["vocab_size"], (arguments.batch, arguments.sequence),
                           device=arguments.device)

    def step():
        model(input_ids=tokens, labels=tokens, use_cache=False).loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    clock = Clock(arguments.device, arguments.seconds)
    for _ in range(2):
        step()
    clock.synchronize()
    taken = []
    while len(taken) < 3 or (len(taken) < 30 and not clock.is_over()):
        taken.append(clock.once(step))
    document = {"id": "train-step", "hardware": about(arguments.device),
                "config": os.path.basename(arguments.config), "batch": arguments.batch,
                "sequence": arguments.sequence, "rematerialization": arguments.rematerialization,
                "compiled": arguments.compile,
                "parameters": sum(p.numel() for p in model.parameters()),
                "step_time_s": statistics.median(taken), "low_s": min(taken),
                "high_s": max(taken), "repeats": len(taken),
                "transformers": transformers.__version__}
    if arguments.device == "cuda":
        document["peak_allocated_bytes"] = torch.cuda.max_memory_allocated()
        document["peak_reserved_bytes"] = torch.cuda.max_memory_reserved()
        used = query_gpu("memory.used")
        document["device_used_bytes"] = int(float(used) * 2**20) if used else math.nan
    document["kernels"] = kernels_of(step, clock)
    write(document, arguments.output)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    for name, function in (("kernels", kernels), ("launch", launch), ("sustained", sustained),
                           ("train", train)):
        verb = verbs.add_parser(name)
        verb.set_defaults(function=function)
        if name == "train":
            verb.add_argument("config")
            verb.add_argument("--batch", type=int, default=1)
            verb.add_argument("--sequence", type=int, default=1024)
            verb.add_argument("--rematerialization", choices=["none", "full"], default="none")
            verb.add_argument("--compile", action="store_true", help="by torch.compile")
            verb.add_argument("--layers", type=int, help="in place of those of CONFIG")
        verb.add_argument("-o", "--output", required=True)
        verb.add_argument("--seconds", type=float, default=60)
        verb.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
        verb.add_argument("--date", default=time.strftime("%Y-%m-%d"))
    arguments = parser.parse_args()
    if arguments.device == "cuda" and not torch.cuda.is_available():
        print("measure_gpu.py: PyTorch sees no GPU here; --device cpu tries the program",
              file=sys.stderr)
        return 4
    torch.manual_seed(0)
    arguments.function(arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
