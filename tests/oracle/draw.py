"""Random meshes, parameter trees, patterns and specs of the rule systems' comparisons."""

import math
import re

import jax
import numpy
from jax.sharding import Mesh, NamedSharding, PartitionSpec

DEVICES = 64  # the fake ones that the driver asks XLA for

SIZES = [1, 2, 2, 3, 4, 4, 8]
DIMENSIONS = [1, 2, 3, 4, 6, 8, 12, 16, 24, 30, 64, 96, 128, 384, 1000, 1024, 4096]
DTYPES = ["float32", "float32", "bfloat16", "int8"]
FOLDERS = ["attn", "mlp", "encoder", "img", "llm", "layers_1", "layers_10", "self_attention"]
LEAVES = ["kernel", "bias", "scale", "w", "embedding", "q_proj", "wi"]


def chance(random, probability):
    return random.random() < probability


def mesh(random, names=("data", "model", "replica", "x"), most=3):
    """An ordered dict of axes with at most DEVICES devices."""
    count = random.randint(1, min(most, len(names)))
    axes = {}
    for name in random.sample(list(names), count):
        size = random.choice(SIZES)
        if math.prod(axes.values()) * size <= DEVICES:
            axes[name] = size
    return axes or {names[0]: 2}


def jax_mesh(axes):
    devices = numpy.array(jax.devices()[: math.prod(axes.values())])
    return Mesh(devices.reshape(list(axes.values())), tuple(axes))


def shape(random, ranks=(0, 1, 1, 2, 2, 2, 3, 3, 4, 5)):
    dimensions = []
    for _ in range(random.choice(ranks)):
        if dimensions and chance(random, 0.4):
            dimensions.append(random.choice(dimensions))
        else:
            dimensions.append(0 if chance(random, 0.01) else random.choice(DIMENSIONS))
    while math.prod(dimensions) > 2**40:
        dimensions.pop()
    return dimensions


def tree(random, leaf):
    """Nested dicts and lists; leaf() makes what is in them."""
    def node(depth):
        if depth == 0 or chance(random, 0.3):
            return leaf()
        if chance(random, 0.2):
            return [node(depth - 1) for _ in range(random.randint(1, 3))]
        names = FOLDERS if depth > 1 else LEAVES
        return {name: node(depth - 1) for name in random.sample(names, random.randint(1, 3))}

    return {name: node(2) for name in random.sample(FOLDERS + LEAVES, random.randint(1, 3))}


def arrays(random, **options):
    """A tree of abstract arrays."""
    def leaf():
        dtype = numpy.dtype(jax.numpy.dtype(random.choice(DTYPES)))
        return jax.ShapeDtypeStruct(tuple(shape(random, **options)), dtype)

    return tree(random, leaf)


def names(parameters, is_leaf=None):
    """The leaves by the names that shardsim gives them, in jax's order."""
    found, _ = jax.tree_util.tree_flatten_with_path(parameters, is_leaf=is_leaf)
    return {jax.tree_util.keystr(path, simple=True, separator="/"): leaf for path, leaf in found}


def described(parameters):
    """The tree as shardsim reads it."""
    def describe(node):
        if isinstance(node, dict):
            return {name: describe(inner) for name, inner in node.items()}
        if isinstance(node, list):
            return [describe(inner) for inner in node]
        return {"shape": list(node.shape), "dtype": str(node.dtype)}

    return {"schema": "shardsim/parameter-tree/1", "parameters": describe(parameters)}


def pattern(random, leaves):
    """A regular expression that may match one of the names, in full or somewhere."""
    name = random.choice(leaves)
    parts = name.split("/")
    kind = random.randrange(8)
    if kind == 0:
        return ".*"
    if kind == 1:
        return re.escape(name)
    if kind == 2:
        return ".*/" + re.escape(parts[-1])
    if kind == 3:
        return re.escape(parts[0]) + "/.*"
    if kind == 4:
        return "(" + "|".join(re.escape(random.choice(leaves)) for _ in range(2)) + ")"
    if kind == 5:
        return "/".join("[^/]+" if chance(random, 0.5) else re.escape(part) for part in parts)
    if kind == 6:
        return re.sub(r"\d+", lambda _: r"\\d+", parts[0]) + (".*" if chance(random, 0.5) else "")
    return random.choice(["nothing", "(?i:KERNEL)$", "^attn", "layers_1", ".+[ls]$", "(?!img).*"])


def spec(random, axes, most=4, wrong=0.02):
    """Entries of a spec: mostly of distinct axes that the mesh has."""
    free = list(axes)
    random.shuffle(free)
    entries = []
    for _ in range(random.randint(0, most)):
        if chance(random, wrong):
            entries.append(random.choice(["absent", random.choice(list(axes))]))
        elif not free or chance(random, 0.4):
            entries.append(None)
        elif len(free) > 1 and chance(random, 0.3):
            entries.append([free.pop(), free.pop()])
        else:
            entries.append(free.pop())
    return entries


def as_spec(entries):
    return PartitionSpec(*(tuple(e) if isinstance(e, list) else e for e in entries))


def as_json(partition_spec):
    return [list(entry) if isinstance(entry, tuple) else entry for entry in partition_spec]


def placed(specs, shapes, device_mesh, uneven):
    """What a program does with the specs: a sharding of each, then each on its array. Returns them as
    JSON, or raises what JAX raises."""
    shardings = {name: NamedSharding(device_mesh, one) for name, one in specs.items()}
    for name, sharding in shardings.items():
        sharding.check_compatible_aval(shapes[name])
        if not uneven:
            sharding.shard_shape(shapes[name])
    return {name: as_json(one) for name, one in specs.items()}
