"""Measures products, attention, norms, ... by shape: the verb `kernels` of measure_gpu.py."""

import itertools
import os
import sys
import time

import torch

from gpu_clock import Clock, about, device_name, random, write


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
