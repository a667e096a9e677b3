"""google/praxis and google/paxml: to_partition_spec and padding of weights, the specs of a step's
inputs."""

import logging
import math
import re
import types

import jax
import numpy
from jax.sharding import PartitionSpec

import draw
import upstream

AXES = ("replica", "data", "mdl", "stage")


def base_layer():
    return upstream.load(upstream.PRAXIS, "base_layer.py", ["to_partition_spec"], {"jax": jax})


def mapping(random, axes, rank, wrong):
    """A split-dims mapping: names of axes, their positions, lists of either, nulls."""
    names = list(axes)
    free = list(names)
    random.shuffle(free)

    def axis():
        name = free.pop()
        return names.index(name) if draw.chance(random, 0.3) else name

    entries = []
    for _ in range(rank):
        if draw.chance(random, wrong):
            entries.append(random.choice([len(names), "absent", names[0], ["absent"], [-1, names[0]],
                                          [[names[0]]], 1.5]))
        elif not free or draw.chance(random, 0.4):
            entries.append(random.choice([None, -1, -2]))
        elif len(free) > 1 and draw.chance(random, 0.3):
            entries.append([axis(), axis()])
        elif draw.chance(random, 0.1):
            entries.append([axis()])
        else:
            entries.append(axis())
    return entries


class Weights:
    """Specs and padded shapes of variables. Patterns are shardsim's, in the place of layers."""

    def __init__(self):
        self.to_partition_spec = base_layer()["to_partition_spec"]
        self.paddings = upstream.load(upstream.PRAXIS, "py_utils.py", ["get_uneven_sharding_paddings"],
                                      {"jax": jax, "np": numpy})["get_uneven_sharding_paddings"]

    def case(self, random):
        axes = draw.mesh(random, AXES)
        parameters = draw.arrays(random, ranks=(1, 1, 2, 2, 3, 3, 4))
        leaves = draw.names(parameters)
        wrong = 0.3 if draw.chance(random, 0.2) else 0.0
        weights, prefixes = [], []
        for name in random.sample(list(leaves), random.randint(0, min(4, len(leaves)))):
            rank = len(leaves[name].shape)
            stacked = random.choice([0, 0, 0, min(1, rank - 1)])
            pattern = "^" + re.escape(name) + "$"
            whole = mapping(random, axes, rank, wrong)
            if stacked:
                prefixes.append([pattern, whole[:stacked]])
            weights.append([pattern, None if draw.chance(random, 0.1) else whole[stacked:]])
            if wrong and draw.chance(random, 0.3):
                weights[-1][1] = whole + [None]
            wrong = 0.0  # one of them: shardsim reads all mappings before it looks at a variable
        strategy = {"name": "praxis", "weights": weights}
        if prefixes:
            strategy["repeat_prefix"] = prefixes

        def answer():
            return self.run(axes, leaves, weights, prefixes)

        return {"tree": draw.described(parameters), "mesh": axes, "strategy": strategy,
                "uneven": False}, answer

    def run(self, axes, leaves, weights, prefixes):
        mesh = draw.jax_mesh(axes)
        specs = {}
        for name, leaf in leaves.items():
            prefix = next((m for pattern, m in prefixes if re.search(pattern, name)), [])
            split = next((m for pattern, m in weights if re.search(pattern, name)), None)
            rank = len(leaf.shape) - len(prefix)
            # WeightHParams.__post_init__ and full_split_dims_mapping.
            split = (-1,) * rank if split is None else split
            assert len(split) == rank
            specs[name] = self.to_partition_spec((*prefix, *split), list(axes))
        padded = {}
        for name, spec in specs.items():
            jax.sharding.NamedSharding(mesh, spec)  # before anything is padded for it
        for name, spec in specs.items():
            shape = leaves[name].shape
            paddings = self.paddings(spec, shape, list(axes.values()), list(axes))
            padded[name] = tuple(size + more for size, more in zip(shape, paddings))
        placed = draw.placed(specs, padded, mesh, False)
        return {name: [placed[name], list(padded[name])] for name in specs}

    def ask(self, shardsim, case):
        found = {}
        for leaf in shardsim.specs(case)["parameters"]:
            parts = [1] * len(leaf["shape"])
            for dim, entry in enumerate(leaf["returned_spec"]):
                over = [entry] if isinstance(entry, str) else entry or []
                parts[dim] = math.prod(case["mesh"][axis] for axis in over)
            padded = [size * count for size, count in zip(leaf["shard_shape"], parts)]
            found[leaf["name"]] = [leaf["returned_spec"], padded]
        return found


class Inputs:
    """How the inputs of a step enter and are read: shard_on_batch_dim_partition_spec and
    infer_partition_spec_based_on_rank_fn."""

    def __init__(self):
        namespace = {"jax": jax, "pjit": types.SimpleNamespace(PartitionSpec=PartitionSpec),
                     "base_layer": types.SimpleNamespace(**base_layer()), "logging": logging}
        upstream.load(upstream.PAXML, "trainer_lib.py",
                      ["shard_on_batch_dim_partition_spec", "infer_partition_spec_based_on_rank_fn"],
                      namespace)
        self.entering = namespace["shard_on_batch_dim_partition_spec"]
        self.read = namespace["infer_partition_spec_based_on_rank_fn"]

    def case(self, random):
        axes = draw.mesh(random, AXES[:3])
        # A step's inputs have one batch, which replica and data split wherever they are in a mesh.
        batch = [axis for axis in axes if axis != "mdl" or draw.chance(random, 0.3)]
        random.shuffle(batch)
        positions = [list(axes).index(axis) if draw.chance(random, 0.2) else axis for axis in batch]
        entry = random.choice([positions, positions[0]]) if len(batch) == 1 else (positions or None)
        maps = {"map_1d": [entry], "map_2d": [entry, None], "map_3d": [entry, None, None]}
        kind = random.random()
        if kind < 0.1:
            del maps[random.choice(list(maps))]
        elif kind < 0.25:
            maps = {key: None for key in maps}
        elif kind < 0.3:  # all: shardsim looks at those of other ranks, too
            maps = {key: ["absent"] for key in maps}
        size = math.prod(axes.values()) * random.choice([1, 2, 3])
        if draw.chance(random, 0.1):
            size += 1
        inputs = {"inputs": (size, 24), "labels": (size,)}
        strategy = {"name": "praxis", "weights": [["kernel", None]], "inputs_split_mapping": maps}
        if "mdl" in axes and "mdl" not in batch and maps.get("map_2d") is not None:
            strategy["weights"] = [["input_dense/kernel", [None, "mdl"]]]

        def answer():
            return {name: self.moved(axes, maps, shape) for name, shape in inputs.items()}

        return {"workload": {"model": "model.json", "batch": size, "metrics": [],
                             "step": random.choice(["train", "forward"])},
                "mesh": axes, "strategy": strategy}, answer

    def moved(self, axes, maps, shape):
        """Whether an input is resharded: the axes of dimension 0 before and after."""
        mesh = draw.jax_mesh(axes)
        x = jax.ShapeDtypeStruct(shape, "float32")
        enters = self.entering(list(axes), x)
        reads = self.read(maps, list(axes), x)
        specs = {"enters": enters, "reads": enters if reads is None else reads}
        draw.placed(specs, {name: shape for name in specs}, mesh, False)

        def over(spec):
            entry = spec[0]
            names = [entry] if isinstance(entry, str) else list(entry or [])
            return [name for name in names if axes[name] > 1]

        enters, reads = (over(spec) for spec in specs.values())
        return None if enters == reads else [enters, reads]

    MODEL = {"model_type": "mlp_classifier", "inputs": 24, "hidden": [48], "classes": 4,
             "dropout_rate": 0.0}

    def ask(self, shardsim, case):
        shardsim.write("model.json", self.MODEL)
        plan = shardsim.ask("plan", shardsim.write("experiment.json", case))
        found = {"inputs": None, "labels": None}
        for collective in plan["collectives"]:
            told = re.match(r"(\w+) enters as \[([^],]*).* and is read as \[([^],]*)",
                            collective["reason"])
            if told:
                found[told[1]] = [[name for name in side.split("+") if name != "-"
                                   and case["mesh"][name] > 1] for side in told.groups()[1:]]
        return found


SYSTEMS = {"praxis": Weights, "praxis_inputs": Inputs}
