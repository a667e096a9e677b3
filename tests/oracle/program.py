"""Random programs as data: what jax runs, what is written to a report, and what a reduction edits.

    mesh     [["x", 2], ["y", 4]]
    inputs   [{"shape": [64, 32], "dtype": "float32", "spec": [["x"], []]}, ...]
    ops      [{"kind": "einsum", "operands": [0, 1], "with": {"letters": "ab,bc->ac"}, "spec": null}]
    outputs  [{"value": 2, "spec": [[], ["y"]]}]
    gradient false

Values are numbered: the inputs, then one per op. A spec has for each dimension the mesh axes that
split it, or "?" where propagation may choose; null says nothing at all. With "gradient" the outputs
are added up to a loss and the program answers its derivative by every float input, each laid out
as that input is.
"""

import copy

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec

UNARY = {"tanh": jnp.tanh, "exp": jnp.exp, "negate": jnp.negative, "sine": jnp.sin,
         "relu": jax.nn.relu, "square": jnp.square}
BINARY = {"add": jnp.add, "multiply": jnp.multiply, "subtract": jnp.subtract,
          "maximum": jnp.maximum}
REDUCE = {"sum": jnp.sum, "max": jnp.max, "min": jnp.min, "mean": jnp.mean}


def norm(x):
    return x * lax.rsqrt(jnp.mean(jnp.square(x), axis=-1, keepdims=True) + 1e-6)


def causal(x):
    rows, columns = (lax.broadcasted_iota(jnp.int32, x.shape, x.ndim - 2 + i) for i in (0, 1))
    return jnp.where(rows >= columns, x, jnp.zeros_like(x))


def scan(options, start, *stacked):
    """A loop over the leading dimension of `stacked`; every step keeps the shape of the carry."""

    def body(carry, slices):
        for step, *operands in options["steps"]:
            if step == "matmul":
                carry = carry @ slices[operands[0]]
            elif step == "add":
                carry = carry + slices[operands[0]]
            elif step == "norm":
                carry = norm(carry)
            else:
                carry = UNARY[step](carry)
        return carry, (jnp.sum(carry, axis=-1) if options["collect"] else None)

    end, collected = lax.scan(body, start, stacked)
    return end + jnp.sum(collected) if options["collect"] else end


def dynamic_slice(o, x, start):
    return lax.dynamic_slice_in_dim(x, start, o["size"], o["axis"])


def dynamic_update(o, x, update, start):
    return lax.dynamic_update_slice_in_dim(x, update, start, o["axis"])


KINDS = {
    "einsum": lambda o, *xs: jnp.einsum(o["letters"], *xs),
    "unary": lambda o, x: UNARY[o["f"]](x),
    "binary": lambda o, x, y: BINARY[o["f"]](x, y),
    "where": lambda o, x, y: jnp.where(x > 0, x, y),
    "cast": lambda o, x: x.astype(o["dtype"]),
    "broadcast": lambda o, x: jnp.broadcast_to(jnp.expand_dims(x, o["axis"]), o["shape"]),
    "causal": lambda o, x: causal(x),
    "reduce": lambda o, x: REDUCE[o["f"]](x, axis=tuple(o["axes"]), keepdims=o["keep"]),
    "argmax": lambda o, x: jnp.argmax(x, axis=o["axis"]),
    "softmax": lambda o, x: jax.nn.softmax(x, axis=o["axis"]),
    "norm": lambda o, x: norm(x),
    "cumsum": lambda o, x: jnp.cumsum(x, axis=o["axis"]),
    "sort": lambda o, x: jnp.sort(x, axis=o["axis"]),
    "reshape": lambda o, x: jnp.reshape(x, o["shape"]),
    "transpose": lambda o, x: jnp.transpose(x, o["order"]),
    "concatenate": lambda o, *xs: jnp.concatenate(xs, axis=o["axis"]),
    "slice": lambda o, x: lax.slice(x, o["starts"], o["limits"], o["strides"]),
    "pad": lambda o, x: lax.pad(x, jnp.zeros((), x.dtype), [tuple(e) for e in o["edges"]]),
    "flip": lambda o, x: jnp.flip(x, axis=o["axis"]),
    "roll": lambda o, x: jnp.roll(x, o["shift"], axis=o["axis"]),
    "take": lambda o, x, i: jnp.take(x, i, axis=o["axis"], mode="clip"),
    "one_hot": lambda o, i: jax.nn.one_hot(i, o["classes"], dtype=jnp.float32),
    "scatter_add": lambda o, x, i, u: x.at[i].add(u),
    "dynamic_slice": dynamic_slice,
    "dynamic_update": dynamic_update,
    "scan": scan,
}


def value_types(program):
    """The jax.ShapeDtypeStruct of every value; raises what jax raises for an op that is not valid."""
    types = [jax.ShapeDtypeStruct(i["shape"], jnp.dtype(i["dtype"])) for i in program["inputs"]]
    for op in program["ops"]:
        types.append(type_of(op, [types[v] for v in op["operands"]]))
    return types


def type_of(op, operands):
    return jax.eval_shape(lambda *xs: KINDS[op["kind"]](op["with"], *xs), *operands)


def divides(spec, shape, mesh):
    """Every dimension is a multiple of its number of tiles: what jax asks of arguments."""
    sizes = dict(map(tuple, mesh))
    for axes, size in zip(spec, shape):
        if axes != "?" and size % int(np.prod([sizes[a] for a in axes], dtype=int)) != 0:
            return False
    return True


def partition_spec(spec):
    entries = [PartitionSpec.UNCONSTRAINED if axes == "?" else tuple(axes) or None for axes in spec]
    return PartitionSpec(*entries)


def lower(program, devices):
    """The lowered jax program."""
    sizes = [size for _, size in program["mesh"]]
    mesh = jax.sharding.Mesh(np.array(devices[: int(np.prod(sizes))]).reshape(sizes),
                             [name for name, _ in program["mesh"]])

    def sharding(spec):
        return None if spec is None else NamedSharding(mesh, partition_spec(spec))

    def outputs(*arguments):
        values = list(arguments)
        for op in program["ops"]:
            value = KINDS[op["kind"]](op["with"], *(values[v] for v in op["operands"]))
            if op["spec"] is not None:
                value = lax.with_sharding_constraint(value, sharding(op["spec"]))
            values.append(value)
        return [values[o["value"]] for o in program["outputs"]]

    inputs = program["inputs"]
    arguments = [jax.ShapeDtypeStruct(i["shape"], jnp.dtype(i["dtype"])) for i in inputs]
    ins = tuple(sharding(i["spec"]) for i in inputs)
    if not program["gradient"]:
        outs = [sharding(o["spec"]) for o in program["outputs"]]
        return jax.jit(outputs, in_shardings=ins, out_shardings=outs).lower(*arguments)
    floats = tuple(i for i, a in enumerate(arguments) if jnp.issubdtype(a.dtype, jnp.floating))

    def loss(*values):
        return sum(jnp.sum(jnp.square(o.astype(jnp.float32))) for o in outputs(*values))

    return jax.jit(jax.grad(loss, floats), in_shardings=ins,
                   out_shardings=tuple(ins[i] for i in floats)).lower(*arguments)


def without_unused(program):
    """A copy in which every input and op is needed by an output."""
    program = copy.deepcopy(program)
    count = len(program["inputs"])
    needed = {o["value"] for o in program["outputs"]}
    for index in reversed(range(len(program["ops"]))):
        if count + index in needed:
            needed.update(program["ops"][index]["operands"])
    numbers = {old: new for new, old in enumerate(sorted(needed))}
    program["inputs"] = [x for i, x in enumerate(program["inputs"]) if i in needed]
    program["ops"] = [x for i, x in enumerate(program["ops"]) if count + i in needed]
    for op in program["ops"]:
        op["operands"] = [numbers[v] for v in op["operands"]]
    for output in program["outputs"]:
        output["value"] = numbers[output["value"]]
    return program


def summary(program):
    """The program in a few lines."""
    lines = ["mesh " + " ".join(f"{name}={size}" for name, size in program["mesh"])]
    for i, value in enumerate(program["inputs"]):
        lines.append(f"v{i}: {value['dtype']}{value['shape']} {spec_text(value['spec'])}")
    for i, op in enumerate(program["ops"], len(program["inputs"])):
        operands = ", ".join(f"v{v}" for v in op["operands"])
        options = " ".join(f"{k}={v}" for k, v in op["with"].items())
        lines.append(f"v{i} = {op['kind']}({operands}) {options} {spec_text(op['spec'])}".rstrip())
    for output in program["outputs"]:
        lines.append(f"answers v{output['value']} {spec_text(output['spec'])}")
    if program["gradient"]:
        lines.append("gradient")
    return "\n".join(lines)


def spec_text(spec):
    if spec is None:
        return ""
    return "P(" + ", ".join("?" if a == "?" else "+".join(a) or "-" for a in spec) + ")"
