"""Train steps of a Llama whose layers are stages of one program, lowered by JAX and compiled by XLA for
8 devices, beside the plan of the same experiment: the same collectives, by kind, number, bytes and
devices.

    shifting_steps.py SHARDSIM [--only TEXT]

Parameters are whole along the data axis: what shards of them cost is not this comparison's. The loop
is praxis' (LayerwiseShardablePipelined and its circular kind, layers/pipeline.py at 00ad7bb3): a buffer of one microbatch for each stage shifts behind every iteration, in which all stages
compute; inputs are padded to all stages, or lie in a stream that shifts the other way. It is written
here, without flax, around layers of a Llama, with the embedding before and the head behind it.

XLA for TPUs compiles them, for a v5e of 2 x 4: XLA for CPUs pads what shifts back to a multiple of the
stages, and moves it by four permutes. What differs and is undone:

    the loss     of all devices is the step's result in JAX, a number that plans leave out
    one layer    of a stage and repeat is no loop of its own, and this compiler then takes reductions of
                 gradients out of the iterations, as the strategy's "reduce_each_microbatch": "none"
                 does; one for the stack of repeats, where the plan has one for each layer: these are
                 compared by their bytes
"""

import argparse
import collections
import os
import sys
import tempfile

os.environ.update(JAX_PLATFORMS="cpu", TPU_SKIP_MDS_QUERY="1", TPU_WORKER_HOSTNAMES="localhost",
                  TPU_ACCELERATOR_TYPE="v5litepod-8", ALLOW_MULTIPLE_LIBTPU_LOAD="1")

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

import hlo_collectives

WIDTH, HEADS, FFN, VOCAB, LAYERS, SEQUENCE = 256, 4, 512, 1024, 8, 64
LOSS_BYTES = 4
DEVICES = np.array(topologies.get_topology_desc("v5e:2x4", "tpu").devices)
SHAPES = {"q": (WIDTH, WIDTH), "k": (WIDTH, WIDTH), "v": (WIDTH, WIDTH), "o": (WIDTH, WIDTH),
          "gate": (WIDTH, FFN), "up": (WIDTH, FFN), "down": (FFN, WIDTH),
          "norm1": (WIDTH,), "norm2": (WIDTH,)}


class Step:
    def __init__(self, stages, microbatches, repeats, stream):
        self.stages, self.microbatches = stages, microbatches
        self.repeats, self.stream, self.batch = repeats, stream, 4 * microbatches
        self.axes = {"stage": stages, "data": 8 // stages}
        self.mesh = Mesh(DEVICES.reshape(stages, -1), tuple(self.axes))
        self.layers_each = LAYERS // (stages * repeats)
        self.reduces_once = repeats > 1 and self.layers_each == 1
        self.iterations = microbatches * repeats + stages - 1
        self.name = (f"{stages} stages, {microbatches} microbatches, {repeats} times round"
                     f"{', in a stream' if stream else ''}")

    def experiment(self):
        model = {"model_type": "llama", "hidden_size": WIDTH, "num_hidden_layers": LAYERS,
                 "num_attention_heads": HEADS, "num_key_value_heads": HEADS,
                 "intermediate_size": FFN, "vocab_size": VOCAB, "tie_word_embeddings": False}
        precision = {"parameters": "fp32", "compute": "fp32", "gradients": "fp32",
                     "master": "none", "indices": "int32"}
        pipeline = {"schedule": "shifting", "repeats": self.repeats, "stream_io": self.stream}
        strategy = {"name": "xla", "pipeline": pipeline}
        if self.reduces_once:
            strategy["reduce_each_microbatch"] = "none"
        return {"workload": {"model": model, "batch": self.batch, "sequence": SEQUENCE,
                             "microbatches": self.microbatches, "rematerialization": "full",
                             "optimizer": "sgd", "precision": precision},
                "mesh": self.axes, "strategy": strategy}

    def constrain(self, x, *spec):
        return jax.lax.with_sharding_constraint(x, NamedSharding(self.mesh, P(*spec)))

    def by_stage(self, x):
        return self.constrain(x, "stage", *[P.UNCONSTRAINED] * (x.ndim - 1))

    def layer(self, x, p):
        x = self.constrain(x, "data", None, None)
        h = norm(x, p["norm1"])
        q, k, v = (heads(h @ p[name]) for name in "qkv")
        scores = jax.nn.softmax(jnp.einsum("bqhe,bkhe->bhqk", q, k), -1)
        x = x + jnp.einsum("bhqk,bkhe->bqhe", scores, v).reshape(x.shape) @ p["o"]
        h = norm(x, p["norm2"])
        return x + (jax.nn.silu(h @ p["gate"]) * (h @ p["up"])) @ p["down"]

    def stage(self, is_valid, x, layers):
        layers = jax.tree.map(lambda w: jnp.where(is_valid, w, jax.lax.stop_gradient(w)), layers)
        return jax.lax.scan(lambda y, p: (self.layer(y, p), None), x, layers)[0]

    def of_repeat(self, layers, t):
        """The layers of each stage, [stages, layers, ...], which are at different repeats."""
        if self.repeats == 1:
            return jax.tree.map(lambda w: w[0], layers)
        ids = jnp.maximum(t - jnp.arange(self.stages), 0) // self.microbatches

        def gather(w):
            one = jax.vmap(lambda x, i: jnp.squeeze(jax.lax.dynamic_slice_in_dim(x, i, 1), 0),
                           in_axes=(1, 0))
            return self.by_stage(one(w, self.by_stage(ids)))

        return jax.tree.map(gather, layers)

    def pipeline(self, layers, inputs):
        """[microbatches, examples, ...] through all stages, repeats times."""
        stages, microbatches = self.stages, self.microbatches
        is_late = self.repeats > 1 and microbatches > stages
        state = {"shift": jnp.zeros((stages,) + inputs.shape[1:], inputs.dtype)}
        if self.stream:
            state["stream"] = self.by_stage(
                inputs.reshape((stages, microbatches // stages) + inputs.shape[1:]))
        else:
            padded = jnp.pad(inputs[:, None], [(0, 0), (0, stages - 1)] + [(0, 0)] * 3)
        if is_late:
            state["last"] = state["shift"]
            state["circular"] = jnp.zeros((stages,) + inputs.shape, inputs.dtype)

        def body(carry, _):
            state, t = carry
            slot = t % (microbatches // stages) if self.stream else None
            x = state["stream"][:, slot] if self.stream else padded[t % microbatches]
            if self.repeats > 1:
                again = state["circular"][:, t % microbatches] if is_late else state["shift"]
                x = jnp.where(t < microbatches, x, again)
            x = self.by_stage(jnp.where(first(state["shift"]), x, state["shift"]))
            ids = t - jnp.arange(stages)
            is_valid = (ids >= 0) & (ids < microbatches * self.repeats)
            y = jax.vmap(self.stage, spmd_axis_name="stage")(is_valid, x, self.of_repeat(layers, t))
            new = {"shift": shifted(y)}
            if is_late:
                offset = (t - stages) % microbatches
                new["circular"] = jax.lax.dynamic_update_slice_in_dim(
                    state["circular"], rotated(state["last"])[:, None], offset, axis=1)
                new["last"] = y
            elif self.repeats > 1:
                new["shift"] = rotated(y)
            if self.stream:
                part = state["stream"][:, slot]
                part = jnp.pad(part, [(0, 1)] + [(0, 0)] * (part.ndim - 1))
                part = jax.lax.slice_in_dim(part, 1, stages + 1)
                part = jnp.where(first(part, stages - 1), y, part)
                new["stream"] = jax.lax.dynamic_update_slice_in_dim(
                    state["stream"], part[:, None], slot, axis=1)
            return (new, t + 1), None if self.stream else y

        policy = jax.checkpoint_policies.nothing_saveable
        body = jax.checkpoint(body, prevent_cse=False, policy=policy)
        (state, _), made = jax.lax.scan(body, (state, jnp.int32(0)), None, length=self.iterations)
        if not self.stream:
            start = [self.iterations - microbatches, stages - 1] + [0] * (made.ndim - 2)
            return jnp.squeeze(jax.lax.slice(made, start, made.shape), 1)
        behind = (stages - 1) % (microbatches // stages)
        stream = jnp.concatenate([state["stream"][:, behind:], state["stream"][:, :behind]], axis=1)
        return stream.reshape((microbatches,) + stream.shape[2:])

    def loss(self, parameters, tokens, labels):
        streams = self.stages if self.stream else 1
        split = self.split()
        x = self.constrain(parameters["embedding"][tokens], split, None, None)
        x = x.reshape((streams, self.batch // self.microbatches, self.microbatches // streams)
                      + x.shape[1:])
        x = x.transpose(0, 2, 1, 3, 4).reshape((self.microbatches, -1) + x.shape[3:])
        y = self.pipeline(parameters["layers"], x)
        y = y.reshape((streams, self.microbatches // streams) + y.shape[1:])
        y = y.transpose(0, 2, 1, 3, 4).reshape((self.batch,) + y.shape[3:])
        y = norm(self.constrain(y, split, None, None), parameters["norm"])
        logits = jax.nn.log_softmax(y @ parameters["head"])
        return -jnp.mean(jnp.take_along_axis(logits, labels[..., None], -1))

    def split(self):
        """Of the batch before and behind the loop."""
        return ("stage", "data") if self.stream else "data"

    def lower(self):
        shapes = {"embedding": (VOCAB, WIDTH), "head": (WIDTH, VOCAB), "norm": (WIDTH,),
                  "layers": {name: (self.repeats, self.stages, self.layers_each) + shape
                             for name, shape in SHAPES.items()}}
        specs = {"embedding": P(), "head": P(), "norm": P(),
                 "layers": {name: P(None, "stage") for name in SHAPES}}
        is_leaf = {"is_leaf": lambda x: isinstance(x, tuple)}
        arguments = jax.tree.map(lambda s: jax.ShapeDtypeStruct(s, jnp.float32), shapes, **is_leaf)
        state = jax.tree.map(lambda s: NamedSharding(self.mesh, s), specs,
                             is_leaf=lambda x: isinstance(x, P))
        batch = NamedSharding(self.mesh, P(self.split()))
        tokens = jax.ShapeDtypeStruct((self.batch, SEQUENCE), jnp.int32)

        def step(parameters, tokens, labels):
            loss, gradients = jax.value_and_grad(self.loss)(parameters, tokens, labels)
            return jax.tree.map(lambda p, g: p - 0.1 * g, parameters, gradients), loss

        jitted = jax.jit(step, in_shardings=(state, batch, batch),
                         out_shardings=(state, NamedSharding(self.mesh, P())))
        return jitted.lower(arguments, tokens, tokens)


    def compared(self, collectives):
        counts = collections.Counter()
        for (kind, where, payload), n in collectives.items():
            if kind == "all-reduce" and payload == LOSS_BYTES:
                continue
            adds_up = kind in ("all-reduce", "reduce-scatter") and self.reduces_once
            counts[kind, where, 1 if adds_up else payload] += n * payload if adds_up else n
        return counts


def norm(x, weight):
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5) * weight


def heads(x):
    return x.reshape(*x.shape[:-1], HEADS, WIDTH // HEADS)


def first(x, stage=0):
    return jax.lax.broadcasted_iota("int32", x.shape, 0) == stage


def shifted(x):
    padded = jnp.pad(x, [(1, 0)] + [(0, 0)] * (x.ndim - 1))
    return jax.lax.slice(padded, [0] * x.ndim, x.shape)


def rotated(x):
    last = jax.lax.slice_in_dim(x, x.shape[0] - 1, x.shape[0])
    return jnp.concatenate([last, jax.lax.slice_in_dim(x, 0, x.shape[0] - 1)])


def steps():
    for stages, microbatches in ((4, 4), (4, 8), (2, 2), (2, 8), (8, 16)):
        for stream in (False, True):
            for repeats in (1, 2, 4):
                if LAYERS % (stages * repeats) == 0:
                    yield Step(stages, microbatches, repeats, stream)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("shardsim")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    shardsim = os.path.abspath(options.shardsim)
    done = different = 0
    with tempfile.TemporaryDirectory() as folder:
        for step in steps():
            if options.only not in step.name:
                continue
            text = step.lower().compile().as_text()
            theirs = step.compared(hlo_collectives.collectives(text, one_gather_per_value=True))
            ours = step.compared(hlo_collectives.plan_of(shardsim, folder,
                                                         {"step.json": step.experiment()}))
            done += 1
            different += not hlo_collectives.are_same(step.name, theirs, ours)
    print(f"{done - different} of {done} steps have the same collectives")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
