"""Compiles programs with XLA on forced host devices: one program as JSON per line of input, one
answer as JSON per line of output.

    {"stablehlo": text, "partitioned": HLO text after spmd-partitioning}    or    {"refused": why}

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

import program as programs  # noqa: E402


def answer(program, folder):
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
