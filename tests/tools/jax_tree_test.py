"""tools/export_jax_tree.py against JAX and flax: what shardsim reads from an exported file is what
the arrays say of themselves. jax_tree_test.py DUMP_TREE"""

import os
import subprocess
import sys

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

import flax.linen as nn
import jax
import jax.numpy as jnp
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from oracle import TOOLS, dump, expect_equal, expect_raises, run_tests, scratch

sys.path.insert(0, TOOLS)
from export_jax_tree import export_tree

OUR_NAMES = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16", "float8_e4m3fn": "fp8_e4m3"}


class Mlp(nn.Module):
    @nn.compact
    def __call__(self, x):
        initializer = nn.with_logical_partitioning(nn.initializers.zeros, ("embed", "mlp"))
        x = nn.Dense(16, kernel_init=initializer, name="up")(x)
        return nn.Dense(8, dtype=jnp.bfloat16, name="down")(x)


def init_mlp():
    return Mlp().init(jax.random.key(0), jnp.zeros((2, 8)))


def placed_mlp():
    """What --call is for: ShapeDtypeStructs with shardings."""
    mesh = jax.make_mesh((2, 4), ("data", "model"))
    specs = {"kernel": P("data", "model"), "bias": P(("model", "data")), "scale": P()}
    return {
        name: jax.ShapeDtypeStruct((8, 16)[: max(1, len(spec))], "float32",
                                   sharding=NamedSharding(mesh, spec))
        for name, spec in specs.items()
    }


def test_names_shapes_and_logical_axes_of_linen():
    path = scratch("linen.json")
    tree = jax.eval_shape(init_mlp)
    export_tree(tree, path, model="mlp")
    read = dump(path)
    expect_equal(read["model"], "mlp")
    expected = {}
    for key, leaf in jax.tree_util.tree_flatten_with_path(nn.unbox(tree))[0]:
        name = jax.tree_util.keystr(key, simple=True, separator="/")
        expected[name] = {"shape": list(leaf.shape), "dtype": OUR_NAMES[str(leaf.dtype)]}
    expected["params/up/kernel"]["logical_axes"] = ["embed", "mlp"]
    expect_equal(read["parameters"], expected)
    expect_equal(list(read["parameters"]), list(expected))  # tree_flatten's order


def test_order_is_that_of_tree_flatten():
    leaf = jax.ShapeDtypeStruct((2,), "float32")
    tree = {"b": [leaf] * 12, "B": leaf, "a_10": leaf, "a_2": {"x": leaf}, "a": {"y": (leaf, leaf)}}
    path = scratch("order.json.gz")
    export_tree(tree, path)
    keys = [key for key, _ in jax.tree_util.tree_flatten_with_path(tree)[0]]
    expect_equal(
        list(dump(path)["parameters"]),
        [jax.tree_util.keystr(key, simple=True, separator="/") for key in keys],
    )


def test_every_dtype_of_jax_is_read():
    from jax import dtypes

    types = ["bool", "int4", "uint4", "int8", "uint8", "int16", "uint16", "int32", "uint32",
             "float16", "bfloat16", "float32", "complex64", "float8_e4m3fn", "float8_e5m2",
             "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn"]
    tree = {name: jax.ShapeDtypeStruct((3,), dtypes.canonicalize_dtype(jnp.dtype(name)))
            for name in types}
    path = scratch("dtypes.json")
    export_tree(tree, path)
    expect_equal(len(dump(path)["parameters"]), len(types))


def test_named_shardings_of_arrays_on_eight_devices():
    mesh = jax.make_mesh((2, 4), ("data", "model"))
    specs = {
        "kernel": P("data", "model"),
        "embedding": P(("model", "data")),
        "bias": P(None),
        "scale": P(),
    }
    tree = {
        name: jax.device_put(jnp.zeros((8, 16)), NamedSharding(mesh, spec))
        for name, spec in specs.items()
    }
    path = scratch("sharded.json")
    export_tree(tree, path)
    read = dump(path)
    expect_equal(read["mesh"], {"data": 2, "model": 4})
    recorded = {name: leaf["spec"] for name, leaf in read["parameters"].items()}
    expect_equal(
        recorded,
        {"kernel": ["data", "model"], "embedding": [["model", "data"]], "bias": [None], "scale": []},
    )
    # What JAX itself holds on a device is what the spec says.
    for name, array in tree.items():
        sizes = [1, 1]
        for dim, entry in enumerate(recorded[name]):
            axes = [entry] if isinstance(entry, str) else entry or []
            for axis in axes:
                sizes[dim] *= read["mesh"][axis]
        shard = [8 // sizes[0], 16 // sizes[1]]
        expect_equal(shard, list(array.addressable_shards[0].data.shape))


def test_nnx_variables():
    class Model(nnx.Module):
        def __init__(self, rngs):
            initializer = nnx.with_partitioning(nnx.initializers.zeros_init(), ("data", None))
            self.layer = nnx.Linear(4, 8, kernel_init=initializer, rngs=rngs)
            self.blocks = nnx.List([nnx.Linear(2, 2, rngs=rngs) for _ in range(11)])

    mesh = jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    with jax.set_mesh(mesh):
        state = nnx.state(nnx.eval_shape(lambda: Model(nnx.Rngs(0))), nnx.Param)
    path = scratch("nnx.json")
    export_tree(state, path)
    read = dump(path)["parameters"]
    expect_equal(read["layer/kernel"]["logical_axes"], ["data", None])
    expect_equal(read["layer/kernel"]["shape"], [4, 8])
    expect_equal([name for name in read if name.endswith("bias")],
                 [f"blocks/{i}/bias" for i in range(11)] + ["layer/bias"])


def test_keys_and_scalars():
    path = scratch("state.json")
    export_tree({"rng": jax.random.key(0), "step": 3, "none": None}, path)
    expect_equal(
        dump(path)["parameters"],
        {"rng": {"shape": [2], "dtype": "uint32"}, "step": {"shape": [], "dtype": "int32"}},
    )


def test_refusals():
    path = scratch("never.json")
    expect_raises("name: str is no array", lambda: export_tree({"name": "text"}, path))
    devices = jax.devices()
    one = NamedSharding(jax.sharding.Mesh(devices, ("data",)), P("data"))
    two = NamedSharding(jax.sharding.Mesh(devices[:4], ("data",)), P("data"))
    leaves = [jax.ShapeDtypeStruct((8,), "float32", sharding=s) for s in (one, two)]
    expect_raises("different meshes", lambda: export_tree(leaves, path))
    expect_raises(
        "two leaves are named 'a/b'",
        lambda: export_tree({"a": {"b": jnp.zeros(1)}, "a/b": jnp.zeros(1)}, path),
    )


def test_command_line():
    here = os.path.dirname(os.path.abspath(__file__))
    script = os.path.join(TOOLS, "export_jax_tree.py")
    for function, options in ("init_mlp", []), ("placed_mlp", ["--call"]):
        path = scratch("cli.json")
        command = [sys.executable, script, f"jax_tree_test:{function}", "-o", path, *options]
        subprocess.run(command, check=True, cwd=here)
        read = dump(path)
        expect_equal("mesh" in read, function == "placed_mlp")


if __name__ == "__main__":
    run_tests(globals())
