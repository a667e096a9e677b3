"""workloads/files/safetensors.hpp against the safetensors library: files that it writes are read, files
that it refuses are refused. safetensors_tree_test.py DUMP_TREE"""

import json
import os
import struct

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from oracle import dump, expect_equal, refusal, run_tests, scratch

OUR_NAMES = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "F8_E5M2": "fp8_e5m2", "F8_E4M3": "fp8_e4m3",
    "F8_E8M0": "fp8_e8m0", "I16": "int16", "U16": "uint16", "F16": "fp16", "BF16": "bf16",
    "I32": "int32", "U32": "uint32", "F32": "fp32", "C64": "complex64", "F64": "fp64",
    "I64": "int64", "U64": "uint64", "F4": "fp4_e2m1", "F8_E4M3FNUZ": "fp8_e4m3fnuz",
    "F8_E5M2FNUZ": "fp8_e5m2fnuz",
}  # fmt: skip


def library_view(path):
    with safe_open(path, "pt") as file:
        slices = {name: file.get_slice(name) for name in file.keys()}
        return {
            name: {"shape": list(part.get_shape()), "dtype": OUR_NAMES[part.get_dtype()]}
            for name, part in slices.items()
        }


def test_every_dtype_that_the_library_writes():
    types = [torch.bool, torch.uint8, torch.int8, torch.float8_e5m2, torch.float8_e4m3fn,
             torch.float8_e8m0fnu, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz, torch.int16,
             torch.uint16, torch.float16, torch.bfloat16, torch.int32, torch.uint32, torch.float32,
             torch.complex64, torch.float64, torch.int64, torch.uint64,
             torch.float4_e2m1fn_x2]  # fmt: skip
    tensors = {}
    for i, dtype in enumerate(types):
        bytes_ = torch.zeros(2 * 3 * dtype.itemsize, dtype=torch.uint8)
        tensors[f"layers.{i}.weight"] = bytes_.view(dtype).reshape(2, 3)
    tensors["scalar"] = torch.tensor(1.0)
    tensors["empty"] = torch.zeros(0, 4)
    path = scratch("dtypes.safetensors")
    save_file(tensors, path, metadata={"format": "pt"})
    expect_equal(dump(path)["parameters"], library_view(path))


def test_index():
    shards = {
        "model-00001-of-00002.safetensors": {"a.weight": torch.zeros(2, 3)},
        "model-00002-of-00002.safetensors": {"b.weight": torch.zeros(4, dtype=torch.bfloat16)},
    }
    folder = scratch("sharded")
    os.mkdir(folder)
    weight_map = {}
    expected = {}
    for shard, tensors in shards.items():
        save_file(tensors, os.path.join(folder, shard))
        expected.update(library_view(os.path.join(folder, shard)))
        weight_map.update({name: shard for name in tensors})
    index = os.path.join(folder, "model.safetensors.index.json")
    with open(index, "w") as file:
        json.dump({"metadata": {"total_size": 32}, "weight_map": weight_map}, file)
    expect_equal(dump(index)["parameters"], expected)
    expect_equal(dump(folder)["parameters"], expected)


def test_both_refuse():
    tensor = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
    hostile = {
        "overlap": ({"a": tensor, "b": {**tensor, "data_offsets": [4, 12]}}, 12),
        "gap": ({"a": tensor, "b": {**tensor, "data_offsets": [12, 20]}}, 20),
        "rest": ({"a": tensor}, 9),
        "short": ({"a": tensor}, 7),
        "size": ({"a": {**tensor, "shape": [3]}}, 8),
        "dtype": ({"a": {**tensor, "dtype": "float32"}}, 8),
        "backwards": ({"a": {**tensor, "data_offsets": [8, 0]}}, 8),
        "negative": ({"a": {**tensor, "shape": [-2]}}, 8),
        "overflow": ({"a": {**tensor, "shape": [2**62, 2**62, 2]}}, 8),
        "metadata": ({"__metadata__": {"n": 1}, "a": tensor}, 8),
    }
    for name, (header, data) in hostile.items():
        path = scratch(name + ".safetensors")
        text = json.dumps(header).encode()
        with open(path, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text + bytes(data))
        try:
            library_view(path)
        except Exception:
            refusal(path)
            continue
        raise AssertionError(f"the library reads {name}")


if __name__ == "__main__":
    run_tests(globals())
