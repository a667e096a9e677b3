"""The FSDP tutorial of the UvA (phlippe/uvadlc_notebooks): shard_params, run in shard_map."""

import math
import re
import typing

import flax.linen as nn
import jax
from absl import logging
from jax.sharding import PartitionSpec

import draw
import upstream

AXES = ("data", "tp", "pipe")


def load(np):
    namespace = {"jax": jax, "lax": jax.lax, "nn": nn, "np": np, "logging": logging,
                 **{name: getattr(typing, name) for name in ("Any", "Callable", "Dict", "Tuple")}}
    return upstream.load(upstream.TUTORIAL, "data_parallel.py", ["shard_params"], namespace)[
        "shard_params"]


def parts(axes, entry):
    over = [entry] if isinstance(entry, str) else entry or []
    return math.prod(axes[axis] for axis in over)


class System:
    def __init__(self):
        self.shard_params = {order: load(np) for order, np in upstream.numpys().items()}

    def case(self, random):
        axes = draw.mesh(random, AXES)
        parameters = draw.arrays(random, ranks=(0, 1, 2, 2, 3, 4, 4, 5, 6))
        leaves = draw.names(parameters)
        over = random.choice(list(axes))
        if len(axes) > 1 and draw.chance(random, 0.2):
            over = random.sample(list(axes), 2)
        if draw.chance(random, 0.03):
            over = "absent"
        order = random.choice(list(self.shard_params))
        size = random.choice([None, 0, 1, 16, 100, 4096])
        strategy = {"name": "fsdp_tutorial", "axis": over, "argsort": order}
        if size is not None:
            strategy["min_weight_size"] = size
        partitioned = []
        for _ in range(random.choice([0, 0, 1, 2])):
            name, leaf = random.choice(list(leaves.items()))
            boxed = draw.spec(random, axes, len(leaf.shape), wrong=0)
            boxed = (boxed + [None] * len(leaf.shape))[: len(leaf.shape)]
            # What another module has split, shard_map has let through.
            boxed = [None if size % parts(axes, entry) else entry
                     for size, entry in zip(leaf.shape, boxed)]
            partitioned.append(["^" + re.escape(name) + "$", boxed])
        if partitioned:
            strategy["partitioned"] = partitioned
        modules = None
        if draw.chance(random, 0.3):
            modules = [draw.pattern(random, list(leaves)) for _ in range(random.randint(1, 2))]
            strategy["modules"] = modules

        def answer():
            return self.run(axes, parameters, strategy, partitioned, modules, order)

        return {"tree": draw.described(parameters), "mesh": axes, "strategy": strategy,
                "uneven": False}, answer

    def run(self, axes, parameters, strategy, partitioned, modules, order):
        mesh = draw.jax_mesh(axes)
        over = strategy["axis"]
        over = tuple(over) if isinstance(over, list) else over
        boxes = {}
        for name, leaf in draw.names(parameters).items():
            for pattern, names in partitioned:  # of several patterns the first
                if re.search(pattern, name):
                    boxes[name] = tuple(tuple(n) if isinstance(n, list) else n for n in names)
                    break
        specs = {}
        shapes = {}

        def path_name(path):
            return jax.tree_util.keystr(path, simple=True, separator="/")

        def local(path, leaf):
            """A device's shard, in a box where other modules have split it."""
            name = path_name(path)
            if name not in boxes:
                return leaf
            sharding = jax.sharding.NamedSharding(mesh, PartitionSpec(*boxes[name]))
            shard = jax.ShapeDtypeStruct(sharding.shard_shape(leaf.shape), leaf.dtype)
            return nn.Partitioned(shard, boxes[name])

        wrapped = {name: modules is None or any(re.search(m, name) for m in modules)
                   for name in draw.names(parameters)}
        trees = {True: {}, False: {}}
        for path, leaf in jax.tree_util.tree_flatten_with_path(parameters)[0]:
            trees[wrapped[path_name(path)]][path_name(path)] = local(path, leaf)

        options = {}
        if "min_weight_size" in strategy:
            options["min_weight_size"] = strategy["min_weight_size"]

        def inside():
            values = jax.tree.map(lambda x: jax.numpy.zeros(x.shape, x.dtype), trees[True])
            return self.shard_params[order](values, over, **options)

        sharded = jax.eval_shape(jax.shard_map(inside, mesh=mesh, in_specs=(),
                                               out_specs=PartitionSpec(), check_vma=False))
        found = nn.get_partition_spec(sharded) | nn.get_partition_spec(trees[False])
        for name, leaf in draw.names(parameters).items():
            specs[name] = found[name]
            shapes[name] = leaf.shape
        return draw.placed(specs, shapes, mesh, False)


SYSTEMS = {"fsdp_tutorial": System}
