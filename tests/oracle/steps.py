"""Whole steps of two rule systems, lowered by JAX and compiled by XLA for 8 CPU devices, beside the
plan of the same experiment: the same collectives, by kind, number, bytes and groups of devices.

    steps.py SHARDSIM [--only TEXT]

The FSDP tutorial's train step is written with shard_map, praxis' train and eval steps with jit, both
here, for a classifier. What XLA does beyond the program is switched off or undone by a rule:

    cse, invariants       off in the tutorial: they merge the gathers of all minibatches into one where
                          Python unrolls the loop, and take them out of the loop where it is lax.scan,
                          for the memory of what is gathered. The plan has them where the program does
    gathers of one value  are one (hlo_collectives.py), so that praxis' forward pass gathers for the
                          backward pass, too, as it does without rematerialization: its experiments
                          say "reshard_after_forward" and "reshard_root_after_forward" are false
    all-reduce combiner   undone (hlo_collectives.py)
    all-reduce and slice  is a reduce-scatter (hlo_collectives.py)
    fusion                off, so that such a slice is to be seen
    bf16 on CPUs          is promoted to fp32 before it is sent: steps compute in fp32. (The tutorial
                          gathers fp32 in any case, and one of its steps computes in bf16.)
"""

import argparse
import math
import os
import sys
import tempfile

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

import hlo_collectives

FUSION = "fusion,cpu-instruction-fusion"
PRECISION = {"parameters": "fp32", "gradients": "fp32", "master": "none", "indices": "int32"}


class Classifier:
    """Dense layers with silu between them; sizes from the inputs to the classes."""

    def __init__(self, *sizes):
        self.sizes = sizes

    def names(self):
        hidden = len(self.sizes) - 2
        inner = ["input_dense"] + [f"hidden_dense_{i}" for i in range(1, hidden)]
        return inner + ["output_dense"]

    def shapes(self):
        shapes = {}
        for name, rows, columns in zip(self.names(), self.sizes, self.sizes[1:]):
            shapes[name + "/kernel"] = (rows, columns)
            shapes[name + "/bias"] = (columns,)
        return shapes

    def config(self):
        return {"model_type": "mlp_classifier", "inputs": self.sizes[0],
                "hidden": list(self.sizes[1:-1]), "classes": self.sizes[-1], "dropout_rate": 0.0}

    def logits(self, parameters, x, compute):
        x = x.astype(compute)
        for name in self.names():
            x = x @ parameters[name + "/kernel"].astype(compute)
            x = x + parameters[name + "/bias"].astype(compute)
            x = x if name == "output_dense" else jax.nn.silu(x)
        return x.astype(jnp.float32)

    def losses(self, parameters, x, labels, compute):
        """Of each example, and how many are right."""
        logits = self.logits(parameters, x, compute)
        return self.losses_of(logits, labels), jnp.sum(jnp.argmax(logits, axis=-1) == labels)

    @staticmethod
    def losses_of(logits, labels):
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1)[:, 0]

    def arguments(self, batch):
        parameters = {name: jax.ShapeDtypeStruct(shape, jnp.float32)
                      for name, shape in self.shapes().items()}
        return (parameters, jax.ShapeDtypeStruct((batch, self.sizes[0]), jnp.float32),
                jax.ShapeDtypeStruct((batch,), jnp.int32))


def mesh_of(axes):
    devices = np.array(jax.devices()[: math.prod(axes.values())])
    return Mesh(devices.reshape(list(axes.values())), tuple(axes))


def update(parameters, gradients):
    return jax.tree.map(lambda p, g: p - 0.1 * g, parameters, gradients)


class Tutorial:
    PASSES_OFF = f"{FUSION},cse,while-loop-invariant-code-motion"
    ONE_GATHER_PER_VALUE = False

    """train_step_fsdp: gather, loss, gradients by minibatches, sync_gradients, metrics."""

    def __init__(self, name, model, axes, batch, minibatches, least=16, scan=False, compute="fp32"):
        self.name = f"tutorial, {name}"
        self.model, self.axes, self.batch = model, axes, batch
        self.minibatches, self.least, self.scan, self.compute = minibatches, least, scan, compute

    def experiment(self):
        strategy = {"name": "fsdp_tutorial", "axis": "data", "min_weight_size": self.least}
        if len(self.axes) > 1:
            strategy["batch_axes"] = list(self.axes)
        return {"workload": {"model": "model.json", "batch": self.batch,
                             "microbatches": self.minibatches, "metrics": ["loss", "accuracy"],
                             "precision": {**PRECISION, "compute": self.compute},
                             "optimizer": "sgd"},
                "mesh": self.axes, "strategy": strategy}

    def dimension(self, shape):
        """The one that is split, or None: the largest that divides, of equals the later."""
        if math.prod(shape) <= self.least:
            return None
        fits = [(size, d) for d, size in enumerate(shape) if size % self.axes["data"] == 0]
        return max(fits)[1] if fits else None

    def lower(self):
        split = {name: self.dimension(shape) for name, shape in self.model.shapes().items()}
        specs = {name: P() if d is None else P(*[None] * d, "data") for name, d in split.items()}
        over = tuple(self.axes)
        compute = {"fp32": jnp.float32, "bf16": jnp.bfloat16}[self.compute]

        def gathered(name, shard):
            if split[name] is None:
                return shard
            return jax.lax.all_gather(shard, "data", axis=split[name], tiled=True)

        def loss(parameters, x, labels):
            whole = {name: gathered(name, shard) for name, shard in parameters.items()}
            losses, right = self.model.losses(whole, x, labels, compute)
            count = x.shape[0]
            return losses.mean(), {"loss": (losses.sum(), count), "accuracy": (right, count)}

        def accumulate(parameters, x, labels):
            size = x.shape[0] // self.minibatches
            parts = [(x[i * size:(i + 1) * size], labels[i * size:(i + 1) * size])
                     for i in range(self.minibatches)]

            def one(part):
                (_, metrics), gradients = jax.value_and_grad(loss, has_aux=True)(parameters, *part)
                return gradients, metrics

            if not self.scan:
                total = one(parts[0])
                for part in parts[1:]:
                    total = jax.tree.map(jnp.add, total, one(part))
                return total
            zeros = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype),
                                 jax.eval_shape(one, parts[0]))
            stacked = jax.tree.map(lambda *values: jnp.stack(values), *parts)
            return jax.lax.scan(lambda sums, part: (jax.tree.map(jnp.add, sums, one(part)), None),
                                zeros, stacked)[0]

        def synchronized(name, gradient):
            """The scatter over data has summed; what is whole along an axis is averaged over it."""
            if split[name] is not None:
                gradient = gradient / self.axes["data"]
            rest = [axis for axis in over if split[name] is None or axis != "data"]
            return jax.lax.pmean(gradient, rest) if rest else gradient

        def step(parameters, x, labels):
            gradients, metrics = accumulate(parameters, x, labels)
            gradients = {name: synchronized(name, g / self.minibatches)
                         for name, g in gradients.items()}
            metrics = jax.tree.map(lambda value: jax.lax.psum(value, over), metrics)
            return update(parameters, gradients), metrics

        sharded = jax.shard_map(step, mesh=mesh_of(self.axes), in_specs=(specs, P(over), P(over)),
                                out_specs=(specs, P()), check_vma=False)
        return jax.jit(sharded).lower(*self.model.arguments(self.batch))


class Praxis:
    """_train_step and _eval_step of partition_spmd_model: inputs enter with their batch over the whole
    mesh and are resharded by rank; the state leaves as it came, all else whole."""

    PASSES_OFF = FUSION
    ONE_GATHER_PER_VALUE = True

    def __init__(self, name, model, axes, batch, weights, step, inputs, outputs=()):
        self.name = f"praxis {step}, {name}"
        self.model, self.axes, self.batch = model, axes, batch
        self.weights, self.step, self.inputs, self.outputs = weights, step, inputs, outputs

    def experiment(self):
        return {"workload": {"model": "model.json", "batch": self.batch, "outputs": list(self.outputs),
                             "step": "train" if self.step == "train" else "forward",
                             "precision": {**PRECISION, "compute": "fp32"}, "optimizer": "sgd"},
                "mesh": self.axes,
                "strategy": {"name": "praxis", "reshard_after_forward": False,
                             "reshard_root_after_forward": False,
                             "weights": [[f"^{name}$", spec] for name, spec in self.weights.items()],
                             "inputs_split_mapping": {"map_1d": [self.inputs],
                                                      "map_2d": [self.inputs, None]}}}

    def lower(self):
        mesh = mesh_of(self.axes)

        def sharding(*entries):
            return NamedSharding(mesh, P(*(tuple(e) if isinstance(e, list) else e for e in entries)))

        state = {name: sharding(*self.weights.get(name, [])) for name in self.model.shapes()}

        def read(x, labels):
            constrain = jax.lax.with_sharding_constraint
            return (constrain(x, sharding(self.inputs, None)),
                    constrain(labels, sharding(self.inputs)))

        def loss(parameters, x, labels):
            logits = self.model.logits(parameters, x, jnp.float32)
            losses = self.model.losses_of(logits, labels)
            every = {"logits": logits, "losses": losses, "labels": labels}
            return losses.mean(), {name: every[name] for name in self.outputs}

        def train(parameters, x, labels):
            leaves, gradients = jax.value_and_grad(loss, has_aux=True)(parameters, *read(x, labels))
            return update(parameters, gradients), leaves

        def evaluate(parameters, x, labels):
            return loss(parameters, *read(x, labels))

        whole = sharding()
        every = list(self.axes)
        step = jax.jit(train if self.step == "train" else evaluate,
                       in_shardings=(state, sharding(every, None), sharding(every)),
                       out_shardings=(state, whole) if self.step == "train" else whole)
        return step.lower(*self.model.arguments(self.batch))


def steps():
    small, deep = Classifier(24, 48, 8), Classifier(16, 64, 32, 64, 24)
    for model, label in ((small, "one hidden layer"), (deep, "three hidden layers")):
        for axes in ({"data": 8}, {"dp": 2, "data": 4}, {"data": 2, "dp": 4}, {"data": 4}):
            where = " ".join(f"{name}={size}" for name, size in axes.items())
            for minibatches in (1, 4):
                yield Tutorial(f"{label}, {where}, {minibatches} minibatches", model, axes, 64,
                               minibatches)
            yield Tutorial(f"{label}, {where}, 4 minibatches by scan", model, axes, 64, 4, scan=True)
    yield Tutorial("computes in bf16, data=8, 4 minibatches", small, {"data": 8}, 64, 4,
                   compute="bf16")
    yield Tutorial("large weights alone, data=8, 4 minibatches", deep, {"data": 8}, 64, 4, least=1024)
    yield Tutorial("a rest that is dropped, data=8, 4 minibatches", small, {"data": 8}, 136, 4)

    megatron = {"input_dense/kernel": ["data", "mdl"], "input_dense/bias": ["mdl"],
                "output_dense/kernel": ["mdl", "data"]}
    columns = {"input_dense/kernel": [None, "data"], "output_dense/kernel": ["data", None]}
    for step in ("train", "eval"):
        for axes in ({"data": 8}, {"replica": 2, "data": 4}):
            where = " ".join(f"{name}={size}" for name, size in axes.items())
            yield Praxis(f"weights over data, {where}", small, axes, 64, columns, step,
                         [name for name in axes if name != "mdl"])
        yield Praxis("inputs in another order, replica=2 data=4", small, {"replica": 2, "data": 4},
                     64, columns, step, ["data", "replica"])
        for axes in ({"data": 2, "mdl": 4}, {"data": 4, "mdl": 2}, {"mdl": 2, "data": 4},
                     {"replica": 2, "data": 2, "mdl": 2}):
            where = " ".join(f"{name}={size}" for name, size in axes.items())
            split = [name for name in axes if name != "mdl"]
            yield Praxis(f"weights over data and mdl, {where}", small, axes, 64, megatron, step, split)
            for outputs in (["logits"], ["losses"], ["labels", "losses", "logits"]):
                yield Praxis(f"{' '.join(outputs)} of every example, {where}", small, axes, 64,
                             megatron, step, split, outputs)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("shardsim")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    shardsim = os.path.abspath(options.shardsim)
    done = different = executions = 0
    with tempfile.TemporaryDirectory() as folder:
        for step in steps():
            if options.only not in step.name:
                continue
            compiled = step.lower().compile(
                compiler_options={"xla_disable_hlo_passes": step.PASSES_OFF})
            theirs = hlo_collectives.collectives(compiled.as_text(), step.ONE_GATHER_PER_VALUE)
            ours = hlo_collectives.plan_of(shardsim, folder, {"model.json": step.model.config(),
                                                              "step.json": step.experiment()})
            done += 1
            executions += sum(theirs.values())
            different += not hlo_collectives.are_same(step.name, theirs, ours)
    print(f"{done - different} of {done} steps have the same collectives "
          f"({executions} executions of collectives in XLA)")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
