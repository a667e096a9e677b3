"""Measures what loads without a pause sustain and draw: the verb `sustained` of measure_gpu.py."""

import contextlib
import dataclasses
import statistics
import subprocess
import threading
import time
import typing

import torch

from gpu_clock import Clock, about, query_gpu, random, write

BATCH_SECONDS = 0.2  # of work between two readings of the rate
FIELDS = {"power.draw.average": "power_w", "power.draw.instant": "instant_power_w",
          "clocks.sm": "sm_clock_mhz", "temperature.gpu": "temperature_c"}


@dataclasses.dataclass
class Load:
    """The same call again and again; what one does, in operations and bytes of device memory."""

    name: str
    call: typing.Callable[[], object]
    flops: float = 0
    bytes: float = 0
    dtype: str = "bf16"
    share: float = 1  # of the time given
    busy: float = 1  # of the time; between calls the device waits, awake


class Sampler(threading.Thread):
    """nvidia-smi beside the work: a reading every 100 ms until it is closed; none without a GPU."""

    def __init__(self, begin):
        super().__init__(daemon=True)
        self.begin = begin
        self.samples = []
        command = ["nvidia-smi", "--id=0", "--query-gpu=" + ",".join(FIELDS),
                   "--format=csv,noheader,nounits", "--loop-ms=100"]
        try:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        except OSError:
            self.process = None
        self.start()

    def run(self):
        if self.process is None:
            return
        for line in self.process.stdout:
            sample = {"at_s": time.monotonic() - self.begin}
            for key, text in zip(FIELDS.values(), line.split(",")):
                with contextlib.suppress(ValueError):  # "[N/A]"
                    sample[key] = float(text)
            self.samples.append(sample)

    def close(self):
        if self.process is not None:
            self.process.terminate()
        self.join(timeout=5)


def product(side, dtype, device, share=1, zeros=False):
    a, b = (random((side, side), torch.bfloat16, device) for _ in range(2))
    if zeros:
        a, b = torch.zeros_like(a), torch.zeros_like(b)
    call = lambda: torch.matmul(a, b.t())
    if dtype == "fp8":
        a, b = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn)
        one = torch.ones((), device=device)
        call = lambda: torch._scaled_mm(a, b.t(), one, one, out_dtype=torch.bfloat16)
    size = 1 if dtype == "fp8" else 2
    return Load(f"{dtype} product of {side}{', zeros' if zeros else ''}", call, 2.0 * side**3,
                (2 * size + 2.0) * side**2, dtype, share)


def attention(is_backward, shape, device):
    """Causal, [batch, heads, sequence, head size]: half of the pairs; five products back, two forth."""
    batch, heads, sequence, depth = shape
    q, k, v = (random(shape, torch.bfloat16, device).requires_grad_(is_backward) for _ in range(3))
    attend = lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    pairs = 2.0 * batch * heads * sequence**2 * depth / 2
    if not is_backward:
        return Load("attention, forward", attend, 2 * pairs)
    out = attend()
    grad = torch.randn_like(out)
    return Load("attention, backward",
                lambda: torch.autograd.grad(out, (q, k, v), grad, retain_graph=True), 5 * pairs)


def moved(name, count, device):
    """A kernel that memory bounds, over `count` numbers of bf16: three operands or two."""
    functional = torch.nn.functional
    a, b, c = (random((count // 8192, 8192), torch.bfloat16, device) for _ in range(3))
    passes, call = {"copy": (2, lambda: a.copy_(b)), "add": (3, lambda: torch.add(a, b, out=c)),
                    "gelu": (2, lambda: functional.gelu(a)),
                    "rms_norm": (2, lambda: functional.rms_norm(a, (8192,))),
                    "softmax": (2, lambda: functional.softmax(a, -1))}[name]
    return Load(name, call, bytes=2.0 * passes * count)


def with_pauses(load, busy):
    return dataclasses.replace(load, name=f"{load.name}, {busy:.0%} of the time", busy=busy, share=0.7)


def alternating(first, second, clock):
    """Both for about as long, one after the other."""
    times = [batch_seconds(clock, load.call) for load in (first, second)]
    count = max(1, round(times[0] / times[1]))
    return Load(f"{first.name} and {count} {second.name}",
                lambda: (first.call(), repeat(second.call, count)), first.flops,
                first.bytes + count * second.bytes)


def loads(device):
    """Each made when its turn comes, so that only its own operands are in memory."""
    is_gpu = device == "cuda"
    side = 8192 if is_gpu else 64
    elements = (1 << 30) if is_gpu else 4096
    shape = (2, 32, 8192, 128) if is_gpu else (1, 1, 64, 16)
    yield lambda: Load("idle", lambda: time.sleep(BATCH_SECONDS / 10), share=0.5)
    yield lambda: product(side, "bf16", device, share=3)
    yield lambda: product(side, "bf16", device, zeros=True)
    yield lambda: product(side // 4, "bf16", device)
    if is_gpu:
        yield lambda: product(side, "fp8", device, share=2)
    yield lambda: attention(False, shape, device)
    yield lambda: attention(True, shape, device)
    for name in ("copy", "add", "rms_norm", "gelu", "softmax"):
        yield lambda name=name: moved(name, elements, device)
    yield lambda: alternating(product(side, "bf16", device), moved("copy", elements // 2, device),
                              Clock(device, 1))
    for busy in (0.25, 0.5, 0.75) if is_gpu else ():
        yield lambda busy=busy: with_pauses(product(side, "bf16", device), busy)
    for make in (lambda: product(side, "fp8", device), lambda: attention(False, shape, device),
                 lambda: attention(True, shape, device), lambda: moved("copy", elements, device),
                 lambda: moved("rms_norm", elements, device)) if is_gpu else ():
        yield lambda make=make: with_pauses(make(), 0.5)


def repeat(call, count):
    for _ in range(count):
        call()


def batch_seconds(clock, call):
    """Of one call, after enough of them that a first one's costs are over."""
    for _ in range(3):
        call()
    clock.synchronize()
    return max(1e-7, clock.once(lambda: repeat(call, 3)) / 3)


def pause(seconds, cycles_per_second):
    """A kernel of one thread that waits: the device stays awake and does nothing."""
    torch.cuda._sleep(int(seconds * cycles_per_second))


def sustain(load, device, seconds):
    """[(end since the beginning, seconds a call)] of batch after batch; one is always queued."""
    clock = Clock(device, seconds)
    each = batch_seconds(clock, load.call)
    call = load.call
    if load.busy < 1:
        cycles = 1e7 / clock.once(lambda: pause(1, 1e7))
        call = lambda: (load.call(), pause(each * (1 / load.busy - 1), cycles))
    count = max(1, int(BATCH_SECONDS * load.busy / each))
    begin = time.monotonic()
    batch = lambda: repeat(call, count)
    if device != "cuda" or load.name == "idle":
        taken = []
        while not taken or time.monotonic() - begin < seconds:
            each = clock.once(batch) / count
            taken.append((time.monotonic() - begin, each))
        return taken
    events = [torch.cuda.Event(enable_timing=True)]
    events[0].record()
    ends = []
    while len(ends) < 2 or time.monotonic() - begin < seconds:
        batch()
        events.append(torch.cuda.Event(enable_timing=True))
        events[-1].record()
        if len(events) > 2:
            events[-2].synchronize()
            ends.append(time.monotonic() - begin)
    return [(end, first.elapsed_time(last) / 1e3 / count)
            for end, first, last in zip(ends, events, events[1:])]


def row_of(load, taken, samples):
    """Rates of the first batch and of the second half, what was drawn in that half."""
    late = [each for end, each in taken if end >= taken[-1][0] / 2]
    each = statistics.median(late)
    row = {"load": load.name, "dtype": load.dtype, "flops": load.flops, "bytes": load.bytes,
           "busy": load.busy, "call_s": each, "first_call_s": taken[0][1], "for_s": taken[-1][0]}
    if load.flops:
        row["first_tflops"] = load.flops / taken[0][1] / 1e12
        row["sustained_tflops"] = load.flops / each / 1e12
    elif load.bytes:
        row["sustained_gbps"] = load.bytes / each / 1e9
    for key in FIELDS.values():
        values = [sample[key] for sample in samples if key in sample]
        if values:
            row[key] = statistics.mean(values)
    return row


def sustained(arguments):
    begin = time.monotonic()
    sampler = Sampler(begin)
    makers = list(loads(arguments.device))
    share = arguments.seconds / (len(makers) + 3)  # the longer ones of `loads` take what is more
    rows = []
    for make in makers:
        load = make()
        at = time.monotonic() - begin
        taken = sustain(load, arguments.device, load.share * share)
        until = time.monotonic() - begin
        late = [s for s in sampler.samples if (at + until) / 2 <= s["at_s"] <= until]
        rows.append(row_of(load, taken, late))
        del load
    sampler.close()
    write({"id": "sustained", "hardware": about(arguments.device),
           "power_limit_w": query_gpu("power.limit"), "sm_clock_limit_mhz": query_gpu("clocks.max.sm"),
           "notes": ["normal random operands but where zeros are said; a rate is the median of the "
                     "second half, power, clock and temperature the mean over it"],
           "n_rows": len(rows), "rows": rows, "samples": sampler.samples}, arguments.output)
