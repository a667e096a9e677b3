"""erfanzar/eformer: match_partition_rules of March 2025 and later, PartitionManager,
create_pattern_based_partition_spec, auto_partition_spec, analyze_sharding_strategy."""

import contextvars
import dataclasses
import re
import threading
import types
import typing
import warnings

import jax
import numpy
from jax import numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import draw
import upstream

AXES = ("dp", "fsdp", "tp", "sp", "ep")


def constraints(folder, wanted, **more):
    def named_tree_map(function, tree, sep):
        return jax.tree_util.tree_map_with_path(
            lambda path, leaf: function(jax.tree_util.keystr(path, simple=True, separator=sep), leaf),
            tree)

    namespace = {"re": re, "np": numpy, "tp": typing, "tu": jax.tree_util, "warnings": warnings,
                 "PartitionSpec": PartitionSpec, "NamedSharding": NamedSharding, "Mesh": Mesh,
                 "named_tree_map": named_tree_map, "LOG_SHARDING_MOVE": False, **more}
    return upstream.load(folder, "constraints.py", wanted, namespace)


def shapes(leaves):
    return {name: leaf.shape for name, leaf in leaves.items()}


def specs_of(tree):
    return draw.names(tree, is_leaf=lambda node: isinstance(node, PartitionSpec))


def rules(random, axes, leaves, most=4):
    """Rules that end in one for all, mostly."""
    found = [[draw.pattern(random, leaves), draw.spec(random, axes, most)]
             for _ in range(random.randint(0, 4))]
    if draw.chance(random, 0.9):
        found.append([".*", random.choice([[], [None], draw.spec(random, axes, 2)])])
    return found


class MatchPartitionRules:
    """The version of March 2025, whose threshold the environment sets, and the later one."""

    def __init__(self):
        self.march = constraints(upstream.EFORMER_MARCH, ["match_partition_rules"])
        self.later = constraints(upstream.EFORMER + "escale/partition/", ["match_partition_rules"],
                                 MIN_SHARDING_SIZE=16384)

    def case(self, random):
        axes = draw.mesh(random, AXES)
        parameters = draw.arrays(random)
        leaves = draw.names(parameters)
        ordered = rules(random, axes, list(leaves))
        strategy = {"name": "match_partition_rules", "rules": ordered}
        march = draw.chance(random, 0.5)
        size = random.choice([0, 1, 100, 4096, None])
        if size is not None or not march:
            strategy["min_size"] = size
        strict = march or draw.chance(random, 0.7)
        if not strict:
            strategy["strict"] = False
        uneven = draw.chance(random, 0.8)

        def answer():
            upstream_rules = [(pattern, draw.as_spec(spec)) for pattern, spec in ordered]
            if march:
                self.march["MIN_SHARDING_SIZE"] = 16384 if size is None else size
                specs = self.march["match_partition_rules"](upstream_rules, parameters)
            else:
                specs = self.later["match_partition_rules"](upstream_rules, parameters, size, strict)
            return draw.placed(specs_of(specs), shapes(leaves), draw.jax_mesh(axes), uneven)

        return {"tree": draw.described(parameters), "mesh": axes, "strategy": strategy,
                "uneven": uneven}, answer


class Fields:
    """What PartitionAxis is made of: a frozen dataclass that its __post_init__ completes."""

    def __init_subclass__(cls):
        dataclasses.dataclass(frozen=True, eq=False)(cls)


class PartitionManager:
    NAMED = ["ColumnWise", "SColumnWise", "RowWise", "SRowWise", "Replicated", "ExpertColumnWise",
             "ExpertRowWise", "ExpertColumnWiseAlt", "ExpertRowWiseAlt", "UnifiedExpertColumnWise",
             "UnifiedExpertRowWise", "ExpertTensorParallel", "ExpertActivations",
             "ExpertActivationsAlt"]
    TOKENS = ["BATCH", "LENGTH", "QUERY_LENGTH", "KV_LENGTH", "EMBED", "HEAD", "KV_HEAD", "HEAD_DIM",
              "KV_HEAD_DIM", "MLP_INTERMEDIATE", "VOCAB", "EXPERT", "EXPERT_GATE", "BIAS_HEAD_SEQ",
              "BIAS_KV_SEQ", "DP", "FSDP", "TP", "SP", "EP"]
    MODES = ["MODE_TRAIN", "MODE_PREFILL", "MODE_DECODE", "MODE_INSERT"]
    FIELDS = ["batch_axis", "sequence_axis", "query_sequence_axis", "head_axis", "kv_head_axis",
              "key_sequence_axis", "hidden_state_axis", "mlp_intermediate_axis", "vocab_axis",
              "expert_axis", "expert_gate_axis", "attention_dim_axis", "attention_kv_dim_axis",
              "bias_head_sequence_axis", "bias_key_sequence_axis", "decode_batch_axis",
              "decode_query_sequence_axis", "decode_head_axis", "decode_kv_head_axis",
              "decode_key_sequence_axis", "decode_attention_dim_axis", "decode_attention_kv_dim_axis"]

    def __init__(self):
        common = ["_Empty", "NOT_GIVEN", "EMPTY", "AxisType", "DATA_PARALLEL", "TENSOR_PARALLEL",
                  "FULLY_SHARDED_DATA_PARALLEL", "EXPERT_PARALLEL", "SEQUENCE_PARALLEL",
                  "GENERATION_MODES", "RUNTIME_MODE_TYPES", "DynamicShardingAxes"]
        self.types = {"tp": typing, "jax": jax, "np": numpy, "jnp": jnp}
        upstream.load(upstream.EFORMER, "common_types.py",
                      common + self.NAMED + self.TOKENS + self.MODES, self.types)
        self.mesh = None
        self.rules = constraints(
            upstream.EFORMER + "escale/partition/",
            ["match_partition_rules", "get_corrected_named_sharding"], MIN_SHARDING_SIZE=16384,
            get_incontext_mesh=lambda raise_error: self.mesh)
        self.manager = {**self.types, "dataclasses": dataclasses, "contextvars": contextvars,
                        "threading": threading, "xTree": Fields, "PyTree": Fields, "hash_fn": None,
                        "PartitionSpec": PartitionSpec}
        upstream.load(upstream.EFORMER, "escale/partition/manager.py",
                      ["_LAST_PARTITION_MANAGER", "PartitionAxis", "PartitionManager"], self.manager)

    def dimension(self, random, nested=True):
        if nested and draw.chance(random, 0.15):
            return [self.dimension(random, False) for _ in range(2)]
        if draw.chance(random, 0.03):
            return "__ABSENT__"
        return random.choice([None, "_", *(self.types[t] for t in random.sample(self.TOKENS, 4))])

    def case(self, random):
        axes = draw.mesh(random, AXES, most=5)
        parameters = draw.arrays(random)
        leaves = draw.names(parameters)
        ordered = []
        for _ in range(random.randint(0, 4)):
            meaning = (random.choice(self.NAMED) if draw.chance(random, 0.5) else
                       [self.dimension(random) for _ in range(random.randint(0, 3))])
            ordered.append([draw.pattern(random, list(leaves)), meaning])
        ordered.append([".*", "Replicated"])
        fields = {}
        if draw.chance(random, 0.4):
            for field in random.sample(self.FIELDS, random.randint(1, 4)):
                pair = random.sample(list(axes), min(2, len(axes)))
                fields[field] = random.choice([None, *axes, pair])
        if draw.chance(random, 0.2):
            fields["tensor_parallel_axis"] = random.choice(list(axes))
        if draw.chance(random, 0.03):
            fields["no_such_axis"] = "dp"
        own = {}
        if draw.chance(random, 0.15):
            own["__MINE__"] = random.choice(["head_axis", "batch_axis", "tp", ["fsdp", "sp"],
                                             "__EMBED__", "__MINE__"])
            ordered.insert(0, [draw.pattern(random, list(leaves)), ["__MINE__", None]])
        mode = random.choice(self.MODES)
        size = random.choice([0, 0, 100, 4096])
        correct = draw.chance(random, 0.6)
        uneven = draw.chance(random, 0.8)
        strategy = {"name": "partition_manager", "rules": ordered, "min_size": size,
                    "mode": self.types[mode], "correct": correct}
        if fields:
            strategy["partition_axis"] = fields
        if own:
            strategy["semantic_axes"] = own

        def answer():
            self.mesh = draw.jax_mesh(axes)
            axis_type = self.manager["PartitionAxis"]
            axis_type.clear_registered_axes()
            for name, rule in own.items():
                axis_type.register(name, rule)
            paxis = axis_type(**{field: tuple(value) if isinstance(value, list) else value
                                 for field, value in fields.items()})
            manager = self.manager["PartitionManager"](paxis)
            resolved = []
            for pattern, meaning in ordered:
                spec = (manager.resolve(self.types[meaning]) if isinstance(meaning, str) else
                        manager.resolve(meaning, self.types[mode]))
                resolved.append((pattern, spec))
            specs = specs_of(self.rules["match_partition_rules"](resolved, parameters, size))
            if correct:
                corrected = self.rules["get_corrected_named_sharding"]
                specs = {name: corrected(leaves[name].shape, spec).spec
                         for name, spec in specs.items()}
            return draw.placed(specs, shapes(leaves), self.mesh, uneven)

        return {"tree": draw.described(parameters), "mesh": axes, "strategy": strategy,
                "uneven": uneven}, answer


class PatternSpec:
    def __init__(self):
        self.march = constraints(upstream.EFORMER_MARCH, ["create_pattern_based_partition_spec"])

    def text(self, random, axes, leaves):
        pieces = []
        for _ in range(random.randint(0, 4)):
            parts = random.choice(leaves).split("/")
            words = [random.choice([*parts, "kernel$", "^attn", "layers_.", "b.as", ""])
                     for _ in range(random.choice([1, 1, 2, 3]))]
            spec = ".".join(random.sample([*axes, ""], random.randint(1, min(3, len(axes)))))
            arrow = random.choice(["->"] * 12 + ["", "->x->"])
            pieces.append("|".join(words) + arrow + spec)
        return ",".join(pieces)

    def case(self, random):
        axes = draw.mesh(random, AXES)
        parameters = draw.arrays(random, ranks=(1, 2, 2, 3, 3, 4))
        leaves = draw.names(parameters)
        text = self.text(random, axes, list(leaves))
        default = draw.spec(random, axes, 1) if draw.chance(random, 0.5) else None
        strategy = {"name": "eformer_pattern", "pattern": text}
        if default is not None:
            strategy["default"] = default
        uneven = draw.chance(random, 0.8)

        def answer():
            mesh = draw.jax_mesh(axes)
            decide = self.march["create_pattern_based_partition_spec"](
                text, mesh, None if default is None else draw.as_spec(default))
            specs = {name: decide(name, leaf) for name, leaf in leaves.items()}
            return draw.placed(specs, shapes(leaves), mesh, uneven)

        return {"tree": draw.described(parameters), "mesh": axes, "strategy": strategy,
                "uneven": uneven}, answer


class InOrder(list):
    """In place of the set in which auto_partition_spec keeps its names: which of several that divide a
    dimension comes first in a set of strings changes from process to process."""


class AutoPartitionSpec:
    def __init__(self):
        self.auto = {order: self.load(np) for order, np in upstream.numpys().items()}

    def load(self, np):
        more = {"np": np, "set": InOrder, "PartitionSpec": PartitionSpec,
                "chex": types.SimpleNamespace(Array=jax.ShapeDtypeStruct)}
        return upstream.load(upstream.EFORMER, "escale/partition/auto_spec.py",
                             ["auto_partition_spec"], more)["auto_partition_spec"]

    def case(self, random):
        axes = draw.mesh(random, AXES, most=4)
        parameters = draw.arrays(random)
        leaves = draw.names(parameters)
        names = None
        if draw.chance(random, 0.5):
            names = random.sample(list(axes), random.randint(0, len(axes)))
            if len(names) > 1 and draw.chance(random, 0.5):
                names[:2] = [names[:2]]
            if draw.chance(random, 0.05):
                names.append("absent")
        size = random.choice([None, 0, 1, 1000, 100000])
        order = random.choice(list(self.auto))
        strategy = {"name": "auto_partition_spec", "argsort": order}
        if names is not None:
            strategy["names"] = names
        if size is not None:
            strategy["min_size"] = size
        reverse = draw.chance(random, 0.3)
        if reverse:
            strategy["reverse"] = True

        def answer():
            mesh = draw.jax_mesh(axes)
            given = names and [tuple(n) if isinstance(n, list) else n for n in names]
            specs = {name: self.auto[order](leaf, mesh, given, size, reverse)
                     for name, leaf in leaves.items()}
            return draw.placed(specs, shapes(leaves), mesh, False)

        return {"tree": draw.described(parameters), "mesh": axes, "strategy": strategy,
                "uneven": False}, answer


class AnalyzeShardingStrategy:
    """What the function returns: two counts, and nothing of what its docstring promises."""

    def __init__(self):
        self.analyze = constraints(upstream.EFORMER_MARCH, ["analyze_sharding_strategy"])[
            "analyze_sharding_strategy"]

    def case(self, random):
        axes = draw.mesh(random, AXES)
        parameters = draw.arrays(random)
        specs = {}
        for name, leaf in draw.names(parameters).items():
            entries = draw.spec(random, axes, len(leaf.shape), wrong=0)
            if draw.chance(random, 0.8):  # a tuple is a KeyError
                entries = [entry[0] if isinstance(entry, list) else entry for entry in entries]
            specs[name] = entries

        def answer():
            tree = jax.tree_util.tree_map_with_path(
                lambda path, _: draw.as_spec(
                    specs[jax.tree_util.keystr(path, simple=True, separator="/")]), parameters)
            try:
                found = self.analyze(parameters, tree, draw.jax_mesh(axes))
            except KeyError:
                return {"raises": "KeyError"}
            return {key: value if isinstance(value, dict) else float(value)
                    for key, value in found.items()}

        return {"tree": draw.described(parameters), "mesh": axes, "uneven": True,
                "flags": ["--analyze"], "strategy": {"name": "specs", "specs": specs}}, answer

    def ask(self, shardsim, case):
        found = shardsim.specs(case)["analyze_sharding_strategy"]
        if "raises" in found:
            return {"raises": found["raises"].split(":")[0]}
        return {key: value if isinstance(value, dict) else float(value)
                for key, value in found.items()}


SYSTEMS = {
    "match_partition_rules": MatchPartitionRules,
    "partition_manager": PartitionManager,
    "eformer_pattern": PatternSpec,
    "auto_partition_spec": AutoPartitionSpec,
    "analyze_sharding_strategy": AnalyzeShardingStrategy,
}
