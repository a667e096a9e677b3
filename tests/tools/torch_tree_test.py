"""tools/export_torch_tree.py against PyTorch: what shardsim reads from an exported file is what the
tensors say of themselves, on a mesh of a fake process group. torch_tree_test.py DUMP_TREE"""

import os
import subprocess
import sys
import warnings

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from torch.testing._internal.distributed.fake_pg import FakeStore

from oracle import TOOLS, dump, expect_equal, expect_raises, run_tests, scratch

sys.path.insert(0, TOOLS)
from export_torch_tree import export_tree

OUR_NAMES = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.int64: "int64"}


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(16, 32, bias=False)
        self.down = nn.Linear(32, 6, dtype=torch.bfloat16)
        self.layers = nn.ModuleList(nn.Linear(4, 4, bias=False) for _ in range(11))


def build():
    return Mlp()


def exported(module, **options):
    path = scratch("module.json")
    export_tree(module, path, **options)
    return dump(path)


def on_meta(make):
    with torch.device("meta"):
        return make()


def check_shards(module, read):
    """Every tensor's local shape on rank 0 is ceil(size / shards), as the spec says."""
    for name, parameter in module.named_parameters():
        expected = list(parameter.shape)
        for dim, entry in enumerate(read["parameters"][name]["spec"]):
            for axis in [entry] if isinstance(entry, str) else entry or []:
                expected[dim] = -(-expected[dim] // read["mesh"][axis])
        expect_equal(list(parameter.to_local().shape), expected)


def test_names_shapes_and_dtypes():
    module = on_meta(build)
    read = exported(module, model="mlp")
    expect_equal(read["model"], "mlp")
    expect_equal(
        read["parameters"],
        {
            name: {"shape": list(p.shape), "dtype": OUR_NAMES[p.dtype]}
            for name, p in module.named_parameters()
        },
    )
    expect_equal("mesh" in read, False)


def test_every_dtype_of_torch_is_read():
    names = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64",
             "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz",
             "float8_e8m0fnu", "float16", "bfloat16", "float32", "float64", "complex64",
             "complex128", "float4_e2m1fn_x2"]
    module = nn.Module()
    for name in names:
        tensor = torch.empty(3, dtype=getattr(torch, name), device="meta")
        module.register_parameter("w_" + name, nn.Parameter(tensor, requires_grad=False))
    read = exported(module)["parameters"]
    expect_equal(len(read), len(names))
    expect_equal(read["w_float4_e2m1fn_x2"], {"shape": [6], "dtype": "fp4_e2m1"})


def test_fsdp2_over_tensor_parallel():
    mesh = init_device_mesh("cpu", (2, 4), mesh_dim_names=("fsdp", "tp"))
    module = on_meta(lambda: nn.Sequential(nn.Linear(16, 32), nn.Linear(32, 6)))
    parallelize_module(module, mesh["tp"], {"0": ColwiseParallel(), "1": RowwiseParallel()})
    fully_shard(module, mesh=mesh["fsdp"])
    read = exported(module)
    expect_equal(read["mesh"], {"fsdp": 2, "tp": 4})
    # tp split the rows first, so it is the major one; RowwiseParallel splits columns.
    expect_equal(
        {name: leaf["spec"] for name, leaf in read["parameters"].items()},
        {
            "0.bias": [["tp", "fsdp"]],
            "0.weight": [["tp", "fsdp"], None],
            "1.bias": ["fsdp"],
            "1.weight": ["fsdp", "tp"],
        },
    )
    check_shards(module, read)


def test_hsdp_and_uneven_rows():
    mesh = init_device_mesh("cpu", (2, 4), mesh_dim_names=("replicate", "shard"))
    module = on_meta(lambda: nn.Linear(16, 6))
    fully_shard(module, mesh=mesh)
    read = exported(module)
    expect_equal(read["mesh"], {"replicate": 2, "shard": 4})
    expect_equal(read["parameters"]["weight"]["spec"], ["shard", None])
    check_shards(module, read)  # 6 rows over 4: 2 on rank 0


def test_shards_from_left_to_right():
    mesh = init_device_mesh("cpu", (2, 4), mesh_dim_names=("a", "b"))
    module = nn.Module()
    tensor = distribute_tensor(torch.zeros(16, 8), mesh, [Shard(0), Shard(0)])
    module.register_parameter("w", nn.Parameter(tensor))
    tensor = distribute_tensor(torch.zeros(16, 8), mesh, [Replicate(), Shard(1)])
    module.register_parameter("v", nn.Parameter(tensor))
    read = exported(module)["parameters"]
    expect_equal(read["w"]["spec"], [["a", "b"], None])
    expect_equal(read["v"]["spec"], [None, "b"])


def test_part_of_a_mesh():
    """Tensor parallelism alone: parameters know only "model", the mesh is the whole one. (A name
    of its own: torch takes equal parts of the meshes of two tests for one.)"""
    mesh = init_device_mesh("cpu", (2, 4), mesh_dim_names=("data", "model"))
    module = on_meta(lambda: nn.Sequential(nn.Linear(16, 32)))
    parallelize_module(module, mesh["model"], {"0": ColwiseParallel()})
    read = exported(module)
    expect_equal(read["mesh"], {"data": 2, "model": 4})
    expect_equal(read["parameters"]["0.weight"]["spec"], ["model", None])


def test_compiled_module_keeps_its_names():
    module = nn.Sequential(torch.compile(on_meta(lambda: nn.Linear(2, 2, bias=False))))
    expect_equal(list(exported(module)["parameters"]), ["0.weight"])


def test_refusals():
    unnamed = init_device_mesh("cpu", (8,))
    module = on_meta(lambda: nn.Linear(16, 8))
    fully_shard(module, mesh=unnamed)
    expect_raises("weight: its mesh of shape (8,) has no names", lambda: exported(module))
    expect_equal(exported(module, axes=["fsdp"])["parameters"]["weight"]["spec"], ["fsdp", None])

    mesh = init_device_mesh("cpu", (8,), mesh_dim_names=("tp",))
    summand = nn.Module()
    tensor = DTensor.from_local(torch.zeros(4), mesh, [Partial()])
    summand.register_parameter("w", nn.Parameter(tensor))
    expect_raises("w: a partial sum over 'tp'", lambda: exported(summand))

    other = init_device_mesh("cpu", (8,), mesh_dim_names=("ep",))
    both = nn.Module()
    for name, its_mesh in ("x", mesh), ("y", other):
        tensor = distribute_tensor(torch.zeros(8), its_mesh, [Shard(0)])
        both.register_parameter(name, nn.Parameter(tensor))
    expect_raises("y: its mesh {'ep': 8} is no part of the mesh {'tp': 8}", lambda: exported(both))


def test_command_line():
    here = os.path.dirname(os.path.abspath(__file__))
    path = scratch("cli.json.gz")
    script = os.path.join(TOOLS, "export_torch_tree.py")
    command = [sys.executable, script, "torch_tree_test:build", "-o", path, "--model", "mlp"]
    subprocess.run(command, check=True, cwd=here)
    expect_equal(dump(path)["model"], "mlp")
    expect_equal(len(dump(path)["parameters"]), 14)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=8)
    run_tests(globals())
