"""AI-Hypercomputer/pathways-utils: find_intermediate_sharding."""

import collections.abc
import logging
import math
import operator

import jax
from jax.sharding import NamedSharding

import draw
import upstream

SIZES = [1, 1, 2, 3, 4, 4, 6, 8, 8]


def load():
    namespace = {"jax": jax, "math": math, "operator": operator, "logging": logging,
                 **{name: getattr(collections.abc, name) for name in ("Sequence", "Mapping")}}
    wanted = ["INTERMEDIATE_SPLIT_SUFFIX", "INTERMEDIATE_REPLICA_SUFFIX",
              "NoIntermediateShardingError", "NoIntermediateShardingNeededError",
              "_get_sharding_spec_dims", "_check_sharding_divisibility", "_get_split_candidates",
              "_build_intermediate_mesh_and_spec", "find_intermediate_sharding"]
    return upstream.load(upstream.PATHWAYS, "reshard.py", wanted, namespace)[
        "find_intermediate_sharding"]


def mesh(random):
    axes = {}
    for name in ("fsdp", "tp", "dp")[: random.randint(1, 3)]:
        size = random.choice(SIZES)
        if math.prod(axes.values()) * size <= 64:
            axes[name] = size
    return axes or {"fsdp": 8}


def text(axes):
    return ",".join(f"{name}={size}" for name, size in axes.items())


class System:
    def __init__(self):
        self.find = load()

    def case(self, random):
        rank = random.randint(1, 3)
        ends = []
        # Half of the pairs as the function has them in mind: an axis split at the source alone.
        meant = draw.chance(random, 0.5)
        for end in range(2):
            axes = mesh(random)
            spec = draw.spec(random, axes, rank, wrong=0)
            if meant:
                order = list(axes) + [None] * rank
                spec = [order[d] for d in (range(rank) if end == 0 else reversed(range(rank)))]
            elif draw.chance(random, 0.7):
                spec = (spec + [None] * rank)[:rank]
            ends.append({"mesh": axes, "spec": spec})
        shape = [math.prod([8, 3, 8, 8])] * rank

        def answer():
            found = [NamedSharding(draw.jax_mesh(end["mesh"]), draw.as_spec(end["spec"]))
                     for end in ends]
            for sharding in found:
                sharding.check_compatible_aval(tuple(shape))
            try:
                intermediate, replicas = self.find(*found)
            except Exception as error:  # whatever it raises, which shardsim reports as an answer
                return {"raises": type(error).__name__}
            return {"mesh": list(intermediate.mesh.shape.items()),
                    "spec": draw.as_json(intermediate.spec), "replica_axes": list(replicas)}

        return {"shape": shape, "dtype": "bf16", "from": ends[0], "to": ends[1],
                "devices": "shared", "machine": "dgx-h100"}, answer

    def ask(self, shardsim, case):
        found = shardsim.ask("reshard", shardsim.write("reshard.json", case))
        answer = found["arrays"][0]["pathways"]
        if "mesh" not in answer:
            return {"raises": answer["error"].split(":")[0]}
        return {"mesh": list(answer["mesh"].items()), "spec": answer["spec"],
                "replica_axes": answer["replica_axes"]}


SYSTEMS = {"pathways": System}
