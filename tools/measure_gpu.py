#!/usr/bin/env python3
"""Measures what a GPU's kernels, launches, clocks and allocator do, with PyTorch alone.

    python measure_gpu.py kernels -o FOLDER      products, attention, norms, ... by shape
    python measure_gpu.py launch -o launch.json  what a launch takes, eager and in a graph
    python measure_gpu.py sustained -o FILE      products for minutes, power and clock beside
    python measure_gpu.py train CONFIG -o FILE   a whole step of a model: time and memory

`kernels` writes one table a class: products.json, attention-forward.json, ... as `shardsim calibrate`
reads published tables of kernels (experiments/kernel_table.hpp). A time is the median over repeats
of one call between two CUDA events, over inputs that change from call to call so that no cache holds
them. Shapes come in the order of their use; when --seconds are over, what is measured is written and
the table says that it is not whole.

--device cpu runs the same code without a GPU, with shapes of a thousandth: for tests.
"""

import argparse
import contextlib
import itertools
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import time

import torch

CACHE_BYTES = 256 << 20  # more than any GPU's last-level cache (B200: 126 MB)


class Clock:
    """Times calls on the device: events on a GPU, the wall clock on a CPU."""

    def __init__(self, device, seconds):
        self.device = device
        self.end = time.monotonic() + seconds

    def is_over(self):
        return time.monotonic() > self.end

    def synchronize(self):
        if self.device == "cuda":
            torch.cuda.synchronize()

    def once(self, call):
        if self.device != "cuda":
            begin = time.perf_counter()
            call()
            return time.perf_counter() - begin
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / 1e3

    def times(self, make_inputs, call, repeats=20):
        """Seconds of `call(*inputs)`: median, 10th and 90th percentile, number of repeats."""
        one = make_inputs()
        held = sum(t.numel() * t.element_size() for t in one if isinstance(t, torch.Tensor))
        copies = 1 if held > CACHE_BYTES else min(8, 1 + CACHE_BYTES // max(held, 1))
        inputs = [one] + [make_inputs() for _ in range(copies - 1)]
        turn = itertools.cycle(inputs)
        for _ in range(3):
            call(*next(turn))
        self.synchronize()
        taken = []
        for _ in range(repeats):
            chosen = next(turn)
            taken.append(self.once(lambda: call(*chosen)))
        taken.sort()
        at = lambda part: taken[min(len(taken) - 1, int(part * len(taken)))]
        return {"time_us": statistics.median(taken) * 1e6, "low_us": at(0.1) * 1e6,
                "high_us": at(0.9) * 1e6, "repeats": len(taken)}


def device_name(device):
    return torch.cuda.get_device_name() if device == "cuda" else "CPU"


def about(device):
    facts = {"device": device_name(device), "torch": torch.__version__,
             "python": platform.python_version()}
    if device == "cuda":
        facts["cuda"] = torch.version.cuda
        facts["cudnn"] = str(torch.backends.cudnn.version())
        properties = torch.cuda.get_device_properties(0)
        facts["multiprocessors"] = properties.multi_processor_count
        facts["memory_bytes"] = properties.total_memory
        facts["driver"] = query_gpu("driver_version")
    return facts


def query_gpu(*fields):
    """nvidia-smi's answer for the first GPU, a text of comma-separated values; "" without one."""
    command = ["nvidia-smi", "--id=0", "--query-gpu=" + ",".join(fields),
               "--format=csv,noheader,nounits"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def write(document, path):
    text = json.dumps(document, indent=1) + "\n"
    with open(path + ".part", "w", encoding="utf-8") as out:
        out.write(text)
    os.replace(path + ".part", path)


# ---- kernels by shape -----------------------------------------------------------------------

class Table:
    """Rows of one class of kernels; written whole after every row that took long to measure."""

    def __init__(self, name, folder, device, date, shrink):
        self.path = os.path.join(folder, name + ".json")
        self.device = device
        self.shrink = shrink
        self.document = {"id": name, "source": {"program": "tools/measure_gpu.py", "date": date},
                         "hardware": about(device), "notes": [], "n_rows": 0, "rows": []}

    def measure(self, clock, row, make_inputs, call):
        """Answers whether there is time for more."""
        if clock.is_over():
            self.document["notes"].append("not whole: the time given was over")
            return False
        try:
            row.update(clock.times(make_inputs, call))
        except (RuntimeError, NotImplementedError) as error:  # out of memory, no such kernel
            reason = str(error).splitlines()[0]
            self.document["notes"].append(f"{row}: {reason}")
            if self.device == "cuda":
                torch.cuda.empty_cache()
            return True
        row["device"] = device_name(self.device)
        self.document["rows"].append(row)
        self.document["n_rows"] = len(self.document["rows"])
        return True

    def write(self):
        write(self.document, self.path)


def product_shapes(shrink):
    """[m, n, k] of a transformer's layers: tokens x width pairs, then cubes."""
    widths = [(4096, 4096), (14336, 4096), (4096, 14336), (1024, 4096), (2048, 2048), (6144, 2048),
              (8192, 8192), (28672, 8192), (8192, 28672), (768, 768), (3072, 768), (50304, 768),
              (128256, 4096)]
    tokens = [8192, 4096, 2048, 1024, 512, 256, 128, 64, 16, 1]
    for m, (n, k) in itertools.product(tokens, widths):
        yield max(1, m // shrink), max(8, n // shrink), max(8, k // shrink)
    for side in (256, 512, 1024, 2048, 4096, 6144, 8192, 12288, 16384):
        side = max(8, side // shrink)
        yield side, side, side


def random(shape, dtype, device):
    return torch.randn(shape, device=device, dtype=torch.float32).to(dtype)


def measure_products(table, clock, dtypes):
    for dtype, (m, n, k) in itertools.product(dtypes, product_shapes(table.shrink)):
        name = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}[str(dtype)[6:]]
        row = {"op": "gemm", "dtype": name, "m": m, "n": n, "k": k}
        make = lambda m=m, n=n, k=k, dtype=dtype: (random((m, k), dtype, table.device),
                                                   random((n, k), dtype, table.device))
        if not table.measure(clock, row, make, lambda a, b: torch.matmul(a, b.t())):
            return


def measure_fp8_products(table, clock):
    one = torch.ones((), device=table.device)
    for m, n, k in product_shapes(table.shrink):
        if m < 16 or m % 16 or n % 16 or k % 16:
            continue
        row = {"op": "gemm", "dtype": "fp8", "out_dtype": "bf16", "m": m, "n": n, "k": k}
        make = lambda m=m, n=n, k=k: (random((m, k), torch.float8_e4m3fn, table.device),
                                      random((n, k), torch.float8_e4m3fn, table.device))
        call = lambda a, b: torch._scaled_mm(a, b.t(), one, one, out_dtype=torch.bfloat16)
        if not table.measure(clock, row, make, call):
            return


def attention_shapes(shrink):
    for sequence, (heads, kv_heads, depth) in itertools.product(
            (512, 1024, 2048, 4096, 8192, 16384),
            ((32, 8, 128), (12, 12, 64), (16, 8, 128), (64, 8, 128))):
        batch = max(1, 16384 // sequence)
        if shrink > 1:
            batch, heads, kv_heads = 1, 2, 1
        yield batch, heads, kv_heads, max(16, sequence // shrink), depth


def measure_attention(table, clock, is_backward):
    attend = torch.nn.functional.scaled_dot_product_attention
    for (batch, heads, kv_heads, sequence, depth), causal in itertools.product(
            attention_shapes(table.shrink), (True, False)):
        row = {"op": "sdpa_bwd" if is_backward else "sdpa_fwd", "dtype": "bf16",
               "pass": "bwd" if is_backward else "fwd", "causal": causal, "batch": batch,
               "heads": heads, "kv_heads": kv_heads, "seq": sequence, "head_dim": depth}

        def make():
            q = random((batch, heads, sequence, depth), torch.bfloat16, table.device)
            k, v = (random((batch, kv_heads, sequence, depth), torch.bfloat16, table.device)
                    for _ in range(2))
            if not is_backward:
                return q, k, v
            for operand in (q, k, v):
                operand.requires_grad_()
            out = attend(q, k, v, is_causal=causal, enable_gqa=heads != kv_heads)
            return out, (q, k, v), torch.randn_like(out)

        forward = lambda q, k, v: attend(q, k, v, is_causal=causal, enable_gqa=heads != kv_heads)
        backward = lambda out, to, grad: torch.autograd.grad(out, to, grad, retain_graph=True)
        if not table.measure(clock, row, make, backward if is_backward else forward):
            return


def moved_shapes(shrink):
    for tokens, width in itertools.product((16384, 4096, 1024, 128), (8192, 4096, 2048, 768)):
        yield max(1, tokens // shrink), width


def measure_moves(table, clock, operations):
    """`operations`: name, tensors read or written of [tokens, width], call, its inputs."""
    for (name, passes, call, inputs), (tokens, width) in itertools.product(
            operations, moved_shapes(table.shrink)):
        row = {"op": name, "dtype": "bf16", "rows": tokens, "width": width,
               "bytes_moved": passes * tokens * width * 2}
        make = lambda: [random((tokens, width), torch.bfloat16, table.device)
                        for _ in range(inputs)]
        if not table.measure(clock, row, make, call):
            return


def norm_operations():
    functional = torch.nn.functional
    return [("rms_norm", 2, lambda x: functional.rms_norm(x, x.shape[-1:]), 1),
            ("layer_norm", 2, lambda x: functional.layer_norm(x, x.shape[-1:]), 1),
            ("softmax", 2, lambda x: functional.softmax(x, -1), 1)]


def elementwise_operations():
    functional = torch.nn.functional
    return [("add", 3, torch.add, 2), ("multiply", 3, torch.mul, 2),
            ("silu", 2, functional.silu, 1), ("gelu", 2, functional.gelu, 1),
            ("cast", 3, lambda x: x.float(), 1)]  # 2 bytes read, 4 written


def measure_copies(table, clock):
    largest = (1 << 30) // table.shrink
    size = 4096
    while size <= largest:
        count = size // 4
        pinned = table.device == "cuda"
        for op, at, to in (("copy_d2d", table.device, table.device),
                           ("copy_d2h", table.device, "cpu"), ("copy_h2d", "cpu", table.device)):
            def make(at=at, to=to):
                place = lambda where: torch.zeros(count, device=where,
                                                  pin_memory=pinned and where == "cpu")
                return place(at), place(to)
            row = {"op": op, "size_bytes": size}
            if not table.measure(clock, row, make, lambda a, b: b.copy_(a, non_blocking=True)):
                return
        size *= 4


def measure_optimizer(table, clock):
    """AdamW's fused step over one flat bf16 parameter with bf16 moments: reads parameter, gradient
    and two moments, writes parameter and moments, seven times two bytes an element."""
    count = 1 << 16
    while count <= (1 << 30) // table.shrink // 4:
        row = {"op": "adamw", "dtype": "bf16", "elements": count, "bytes_moved": 14 * count}

        def make():
            parameter = torch.nn.Parameter(random((count,), torch.bfloat16, table.device))
            parameter.grad = torch.ones_like(parameter)
            return (torch.optim.AdamW([parameter], fused=True),)

        if not table.measure(clock, row, make, lambda optimizer: optimizer.step()):
            return
        count *= 4


def kernels(arguments):
    os.makedirs(arguments.output, exist_ok=True)
    shrink = 1 if arguments.device == "cuda" else 1024
    classes = {
        "products-bf16": lambda t, c: measure_products(t, c, [torch.bfloat16]),
        "attention-forward": lambda t, c: measure_attention(t, c, False),
        "attention-backward": lambda t, c: measure_attention(t, c, True),
        "norms": lambda t, c: measure_moves(t, c, norm_operations()),
        "elementwise": lambda t, c: measure_moves(t, c, elementwise_operations()),
        "optimizer": measure_optimizer,
        "copies": measure_copies,
        "products-fp8": measure_fp8_products,
        "products-fp32": lambda t, c: measure_products(t, c, [torch.float32]),
    }
    end = time.monotonic() + arguments.seconds
    for number, (name, measure) in enumerate(classes.items()):
        left = max(0.0, end - time.monotonic())
        table = Table(name, arguments.output, arguments.device, arguments.date, shrink)
        measure(table, Clock(arguments.device, left / (len(classes) - number)))
        table.write()
        print(f"{name}: {table.document['n_rows']} rows", file=sys.stderr)


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


# ---- sustained products ---------------------------------------------------------------------

def sustained(arguments):
    side = 8192 if arguments.device == "cuda" else 64
    flops = 2 * side**3
    clock = Clock(arguments.device, arguments.seconds)
    a, b = (random((side, side), torch.bfloat16, arguments.device) for _ in range(2))
    rows = []
    begin = time.monotonic()
    batch = 100 if arguments.device == "cuda" else 1
    while not clock.is_over() or not rows:
        taken = clock.once(lambda: [torch.matmul(a, b) for _ in range(batch)])
        row = {"at_s": time.monotonic() - begin, "tflops": batch * flops / taken / 1e12}
        answer = query_gpu("power.draw", "clocks.sm", "temperature.gpu")
        for key, text in zip(("power_w", "sm_clock_mhz", "temperature_c"), answer.split(",")):
            with contextlib.suppress(ValueError):  # "[N/A]"
                row[key] = float(text)
        rows.append(row)
    late = [row["tflops"] for row in rows if row["at_s"] >= rows[-1]["at_s"] / 2]
    write({"id": "sustained", "hardware": about(arguments.device), "power_limit_w":
           query_gpu("power.limit"), "dtype": "bf16", "m": side, "n": side, "k": side,
           "first_tflops": rows[0]["tflops"], "sustained_tflops": statistics.median(late),
           "notes": ["normal random operands; sustained is the median of the second half"],
           "n_rows": len(rows), "rows": rows}, arguments.output)


# ---- a whole step ---------------------------------------------------------------------------

def train(arguments):
    """A step of the model of a config.json in bf16 throughout, AdamW fused, attention by SDPA."""
    import transformers

    with open(arguments.config, encoding="utf-8") as file:
        fields = json.load(file)
    kind = transformers.CONFIG_MAPPING[fields.pop("model_type")]
    model = transformers.AutoModelForCausalLM.from_config(
        kind(**fields), attn_implementation="sdpa", dtype=torch.bfloat16).to(arguments.device)
    model.train()
    if arguments.rematerialization == "full":
        model.gradient_checkpointing_enable({"use_reentrant": False})
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
                "parameters": sum(p.numel() for p in model.parameters()),
                "step_time_s": statistics.median(taken), "low_s": min(taken),
                "high_s": max(taken), "repeats": len(taken),
                "transformers": transformers.__version__}
    if arguments.device == "cuda":
        document["peak_allocated_bytes"] = torch.cuda.max_memory_allocated()
        document["peak_reserved_bytes"] = torch.cuda.max_memory_reserved()
        used = query_gpu("memory.used")
        document["device_used_bytes"] = int(float(used) * 2**20) if used else math.nan
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
