"""google-research/big_vision: infer_sharding."""

import ast
import contextlib
import dataclasses
import functools
import re
import types
from collections.abc import Mapping

import flax
import flax.linen as nn
import jax
import numpy
from absl import logging

import draw
import upstream

OPS = [
    "fsdp(axis={axis})", "fsdp(axis={axis}, min_size_to_shard_mb={mb})",
    "fsdp({axis}, {mb})", "fsdp(axis={axes}, min_size_to_shard_mb={mb})", "fsdp(axis={axes}, min_size_to_shard_mb=0)",
    "shard_dim(axis={axis}, dim={dim}, ignore_ndim_error=True)", "shard_dim({axes}, {dim}, True)",
]
WRONG = [
    "fspd({axis})", "fsdp()", "fsdp(axis=data)", "shard_dim({axis})", "replicate|", "fsdp(",
    " replicate", "replicate(1)", "fsdp(axis='absent')", "shard_dim('absent', 0)", "a.b({axis})",
    "fsdp(axis={axis}, min=3)", "1", "fsdp(axis=3)", "shard_dim({axis}, -5)", "fsdp(axis=[])",
    " fsdp(axis={axis}, min_size_to_shard_mb=0)", "fsdp(axis={axis}, min_size_to_shard_mb='4')",
    "shard_dim({axis}, 'x')", "shard_dim({axis}, {dim})",
]


def load(np):
    registry = {"ast": ast, "functools": functools}
    upstream.load(upstream.BIG_VISION, "pp/registry.py", ["parse_name", "Registry"], registry)
    utils = {"dataclasses": dataclasses, "flax": flax, "jax": jax, "Mapping": Mapping, "np": numpy,
             "re": re, "logging": logging}
    upstream.load(upstream.BIG_VISION, "utils.py",
                  ["_traverse_with_names", "tree_flatten_with_names", "tree_map_with_names",
                   "check_and_compile_patterns", "make_mask_trees"], utils)
    sharding = {"jax": jax, "nn": nn, "np": np, "logging": logging,
                "u": types.SimpleNamespace(**utils), "Registry": registry["Registry"]}
    upstream.load(upstream.BIG_VISION, "sharding.py",
                  ["NamedSharding", "P", "infer_sharding", "replicate", "fsdp", "shard_dim",
                   "logical_partitioning"], sharding)
    return sharding["infer_sharding"]


def op(random, axes, wrong):
    """Of the first of the axes, or the first two."""
    text = random.choice(WRONG) if draw.chance(random, wrong) else random.choice(OPS)
    some = axes[: random.randint(1, 2)]
    collection = tuple(some) if draw.chance(random, 0.5) else some
    return text.format(axis=repr(axes[0]), axes=repr(collection),
                       mb=random.choice([0, 0.001, 0.25, 1, 4]), dim=random.randint(-3, 3))


class System:
    def __init__(self):
        self.infer_sharding = {order: load(np) for order, np in upstream.numpys().items()}

    def case(self, random):
        axes = draw.mesh(random)
        order = random.choice(list(self.infer_sharding))
        parameters = draw.arrays(random, ranks=(0, 1, 2, 2, 3, 4, 4, 5, 6))
        leaves = draw.names(parameters)
        wrong = 0.3 if draw.chance(random, 0.15) else 0.0
        rules = []
        for _ in range(random.choice([0, 1, 2, 3, 4]) if wrong else random.randint(1, 4)):
            pattern = draw.pattern(random, list(leaves))
            if wrong and draw.chance(random, 0.1):
                pattern = random.choice(["/" + pattern, "(", "a**"])
            count = random.choice([1, 1, 1, 1, 2, 3])
            order_of_axes = random.sample(list(axes), len(axes)) * 2
            ops = [op(random, order_of_axes[i % len(axes):], wrong) for i in range(count)]
            if draw.chance(random, 0.1):
                ops.insert(0, random.choice(["replicate", "replicate()"]))
            rules.append([pattern, "|".join(ops)])
        logical = self.box(random, parameters, rules) if draw.chance(random, 0.1) else None
        uneven = draw.chance(random, 0.9)
        strategy = {"name": "big_vision", "rules": rules, "argsort": order}
        document = draw.described(parameters)
        if logical:
            strategy["logical_axis_rules"] = logical.rules
            logical.describe(document["parameters"])

        def answer():
            mesh = draw.jax_mesh(axes)
            params = logical.boxed(parameters) if logical else parameters
            context = (nn.logical_axis_rules(logical.as_flax()) if logical
                       else contextlib.nullcontext())
            with context:
                shardings = self.infer_sharding[order](params, [tuple(rule) for rule in rules], mesh)
            specs = {name: sharding.spec for name, sharding in draw.names(shardings).items()}
            return draw.placed(specs, {n: leaf.shape for n, leaf in leaves.items()}, mesh, uneven)

        return {"tree": document, "mesh": axes, "strategy": strategy, "uneven": uneven}, answer

    def box(self, random, parameters, rules):
        """All or some leaves with flax's names of axes; the tactics then begin with
        logical_partitioning, mostly."""
        if draw.chance(random, 0.8):
            for rule in rules:
                rule[1] = "logical_partitioning()" + random.choice(["", "", "|" + rule[1]])
        return Logical(random, draw.names(parameters))


class Logical:
    NAMES = ["embed", "mlp", "heads", "vocab", "kv", None]

    def __init__(self, random, leaves):
        share = random.choice([0.5, 1.0])
        self.names = {}
        for name, leaf in leaves.items():
            if draw.chance(random, share):
                chosen = random.sample(self.NAMES[:5], min(5, len(leaf.shape)))
                chosen += [None] * (len(leaf.shape) - len(chosen))
                self.names[name] = [None if draw.chance(random, 0.2) else one for one in chosen]
        axes = ["data", "model", "replica", "x"]
        self.rules = [[name, random.choice([None, *axes, random.sample(axes, 2)])]
                      for name in random.sample(self.NAMES[:5], random.randint(0, 5))]

    def as_flax(self):
        return [(name, tuple(to) if isinstance(to, list) else to) for name, to in self.rules]

    def boxed(self, parameters):
        def box(path, leaf):
            name = jax.tree_util.keystr(path, simple=True, separator="/")
            if name not in self.names:
                return leaf
            return nn.LogicallyPartitioned(leaf, tuple(self.names[name]))

        return jax.tree_util.tree_map_with_path(box, parameters)

    def describe(self, parameters, prefix=""):
        entries = parameters.items() if isinstance(parameters, dict) else enumerate(parameters)
        for key, node in entries:
            name = f"{prefix}{key}"
            if isinstance(node, dict) and isinstance(node.get("shape"), list):
                if name in self.names:
                    node["logical_axes"] = self.names[name]
            else:
                self.describe(node, name + "/")


SYSTEMS = {"big_vision": System}
