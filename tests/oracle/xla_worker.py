"""Compiles programs with XLA on forced host devices: one program as JSON per line of input, one
answer as JSON per line of output.

    {"stablehlo": text, "partitioned": HLO text after spmd-partitioning}    or    {"refused": why}

A program with "run": true is run instead, on all devices and on one:

    {"wrong": how the results differ}    or    {}

A process of its own, because XLA ends the process where it finds a bug of its own; whoever asks then
reads the end of the file.
"""

import glob
import json
import os
import shutil
import sys
import tempfile

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402  the environment must be set before
import numpy as np  # noqa: E402

import program as programs  # noqa: E402


def values_of(program, devices):
    """Results for arguments that depend on the program only, one array per device and result."""
    random = np.random.default_rng(0)
    compiled = programs.lower(program, devices).compile()
    arguments = []
    for given, sharding in zip(program["inputs"], compiled.input_shardings[0]):
        kind = jax.numpy.dtype(given["dtype"])
        if jax.numpy.issubdtype(kind, jax.numpy.floating):
            value = random.uniform(0.1, 1, given["shape"])
        else:
            value = random.integers(0, 4, given["shape"])
        arguments.append(jax.device_put(value.astype(kind), sharding))
    return jax.tree.leaves(compiled(*arguments))


def on_one_device(program):
    bare = {**program, "mesh": [[name, 1] for name, _ in program["mesh"]]}
    return values_of(bare, jax.devices()[:1])


def wrong(program):
    """Every shard beside the same part of what one device computes; sums may be in another order.
    All values of a program without a gradient are looked at: its result may not depend on a wrong
    one."""
    if not program["gradient"]:
        first = len(program["inputs"])
        values = [{"value": first + i, "spec": None} for i in range(len(program["ops"]))]
        program = {**program, "outputs": values}
    for result, expected in zip(values_of(program, jax.devices()), on_one_device(program)):
        expected = np.asarray(expected, dtype=np.float64)
        scale = np.nanmax(np.abs(expected), initial=0.0)
        for shard in result.addressable_shards:
            found = np.asarray(shard.data, dtype=np.float64)
            if not np.allclose(found, expected[shard.index], rtol=0.05, atol=0.05 * scale,
                               equal_nan=True):
                return {"wrong": f"a result on device {shard.device.id} is not what one device "
                                 "computes"}
    return {}


def answer(program, folder):
    if program.pop("run", False):
        try:
            return wrong(program)
        except Exception as error:  # then it is not known to be wrong
            return {"not run": f"{type(error).__name__}: {str(error)[:500]}"}
    try:
        lowered = programs.lower(program, jax.devices())
        lowered.compile(compiler_options={
            "xla_dump_to": folder, "xla_dump_hlo_pass_re": "^spmd-partitioning$",
            "xla_backend_optimization_level": 0})
    except Exception as error:  # whatever jax or XLA have against the program
        return {"refused": f"{type(error).__name__}: {str(error)[:500]}"}
    after = glob.glob(os.path.join(folder, "*.after_spmd-partitioning.*"))
    if len(after) != 1:
        return {"refused": f"{len(after)} dumps after spmd-partitioning"}
    with open(after[0], encoding="utf-8") as file:
        return {"stablehlo": lowered.as_text(), "partitioned": file.read()}


def main():
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what XLA prints is no answer
    with tempfile.TemporaryDirectory() as scratch:
        for count, line in enumerate(sys.stdin):
            folder = os.path.join(scratch, "dump")
            os.mkdir(folder)
            replies.write(json.dumps(answer(json.loads(line), folder)) + "\n")
            replies.flush()
            shutil.rmtree(folder)
            if count % 50 == 49:
                jax.clear_caches()


if __name__ == "__main__":
    main()
