"""How the programs that measure a GPU time calls, say what they ran on and write what they found."""

import itertools
import json
import os
import platform
import statistics
import subprocess
import time

import torch

CACHE_BYTES = 256 << 20  # more than any GPU's last-level cache (B200: 126 MB)
QUEUING_CYCLES = 400_000  # some 0.2 ms, more than the launches of a call take


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

    def once(self, call, queued=False):
        """Seconds of `call`; where `queued`, the device is kept busy until it is launched, so that
        what the host takes to launch it does not count."""
        if self.device != "cuda":
            begin = time.perf_counter()
            call()
            return time.perf_counter() - begin
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        if queued:
            torch.cuda._sleep(QUEUING_CYCLES)
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
        # Every copy once: a first call on it may allocate, as an optimizer's does its moments.
        for _ in range(max(3, copies)):
            call(*next(turn))
        self.synchronize()
        taken = []
        for _ in range(repeats):
            chosen = next(turn)
            taken.append(self.once(lambda: call(*chosen), queued=True))
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


def random(shape, dtype, device):
    return torch.randn(shape, device=device, dtype=torch.float32).to(dtype)
