"""One training step of PyTorch's own parallelisms on one rank, without devices: what it sends, in
order, and what it holds.

    fully_shard_worker.py CASE.json RECORD.json ...

CASE has `model`, `settings`, `world_size` and `rank` as the records of tests/golden/torch/fsdp have them,
and RECORD is such a record, as far as torch_golden_test reads it. Process groups are PyTorch's `fake`
ones, tensors have no data.
"""

import contextlib
import re
import sys

import torch
import torch.distributed
from torch._subclasses.fake_tensor import FakeTensorMode, unset_fake_temporarily
from torch.distributed import tensor as dtensor
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor.experimental._context_parallel import _attention as context
from torch.distributed.tensor.parallel import (ColwiseParallel, PrepareModuleInput, RowwiseParallel,
                                               SequenceParallel, loss_parallel, parallelize_module)
from torch.nn import functional
from torch.testing._internal.distributed.fake_pg import FakeStore

import golden_steps
import plain_modules
from call_recorder import Recorder

R, S = dtensor.Replicate, dtensor.Shard
TYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}


def without_memory_of_shapes():
    """DTensor finds shapes by running operators on the global ones, which nobody holds."""
    kind = dtensor._sharding_prop.ShardingPropagator
    inner = kind._propagate_tensor_meta_non_cached

    def quiet(self, schema):
        outer, Recorder.within_kernel = Recorder.within_kernel, True
        try:
            return inner(self, schema)
        finally:
            Recorder.within_kernel = outer
    kind._propagate_tensor_meta_non_cached = quiet


def see_resized_storages():
    """FSDP2 frees what it gathered, and takes it again, by the size of its storage."""
    package = torch.distributed.fsdp._fully_shard
    free, alloc = package._fsdp_param.free_storage, package._fsdp_param.alloc_storage

    def freed(tensor):
        Recorder.current.resize(tensor, 0)
        free(tensor)

    def taken(tensor):
        alloc(tensor)
        Recorder.current.resize(tensor, tensor.numel() * tensor.itemsize)
    package._fsdp_param.free_storage = freed
    package._fsdp_param.alloc_storage = package._fsdp_param_group.alloc_storage = taken


def meshes_have_data():
    """They are made from ranks that are read, within FakeTensorMode too."""
    def with_data(inner):
        def read(*args, **kwargs):
            with unset_fake_temporarily():
                return inner(*args, **kwargs)
        return read
    DeviceMesh.__init__ = with_data(DeviceMesh.__init__)
    DeviceMesh._get_mesh_tensor_from_full_mesh = staticmethod(
        with_data(DeviceMesh._get_mesh_tensor_from_full_mesh))


def name_parts_of_shards(after):
    """Groups of `after` neighbours, which blocks are kept in after forward."""
    module = torch.distributed.fsdp._fully_shard._fully_shard
    inner = module._get_post_forward_mesh_info

    def named(reshard, mesh):
        with unset_fake_temporarily():
            given = inner(reshard, mesh)
        if given is not None and not isinstance(reshard, bool):
            group = given.mesh.get_group(1).group_name
            Recorder.current.groups[group] = f"dp_shard_sub{after}"
        return given
    module._get_post_forward_mesh_info = named


class Meshes:
    """Of pp, dp_replicate, dp_shard, cp and tp, and of the experts' efsdp and ep."""

    def __init__(self, case, settings):
        sizes = {axis: settings.get(axis, 1)
                 for axis in ("pp", "dp_replicate", "dp_shard", "cp", "tp")}
        kept = {axis: size for axis, size in sizes.items() if size > 1}
        if settings.get("ep", 1) > 1:  # the records' experts are over dp_shard alone
            ways = settings["ep"]
            self.whole = init_device_mesh("cpu", (kept["dp_shard"] // ways, ways),
                                          mesh_dim_names=("efsdp", "ep"))
            self.listed = [["efsdp", kept["dp_shard"] // ways], ["ep", ways]]
        else:
            self.whole = init_device_mesh("cpu", tuple(kept.values()), mesh_dim_names=tuple(kept))
            self.listed = [[axis, size] for axis, size in kept.items()]
        self.names = {}
        for axis, _ in self.listed:
            self.names[self.whole[axis].get_group().group_name] = axis
        self.kept = kept

    def get(self, axis):
        with unset_fake_temporarily():
            return self.whole[axis]

    def flat(self, axes, name):
        mesh = self.whole[axes]._flatten(name)
        self.names[mesh.get_group().group_name] = name
        return mesh

    def data(self):
        with unset_fake_temporarily():
            return self.of_parameters()

    def of_parameters(self):
        """What they are sharded over, and before it replicas."""
        if "ep" in [axis for axis, _ in self.listed]:
            return self.flat(("efsdp", "ep"), "dp_shard")
        shard = "dp_shard"
        if "cp" in self.kept:
            shard = "cp"
            if "dp_shard" in self.kept:
                shard = "dp_shard_cp"
                self.flat(("dp_shard", "cp"), shard)
        if "dp_replicate" in self.kept:
            return self.whole["dp_replicate", shard]
        return self.whole[shard]


def tensor_parallel(model, mesh, settings):
    sequence, splits_loss = settings["sp"], settings.get("loss_parallel", False)
    out = S(-1) if splits_loss else R()
    between = S(1) if sequence else R()
    ends = {"model.embed_tokens": RowwiseParallel(input_layouts=R(), output_layouts=between),
            "lm_head": ColwiseParallel(input_layouts=between, output_layouts=out,
                                       use_local_output=not splits_loss)}
    if sequence:
        ends["model.norm"] = SequenceParallel()
    present = {name for name, _ in model.named_modules()}
    parallelize_module(model, mesh, {k: v for k, v in ends.items() if k in present})
    plan = {}
    for part, columns, rows in (("self_attn", ("q_proj", "k_proj", "v_proj"), "o_proj"),
                                ("mlp", ("gate_proj", "up_proj"), "down_proj")):
        plan.update({f"{part}.{name}": ColwiseParallel() for name in columns})
        plan[f"{part}.{rows}"] = RowwiseParallel(output_layouts=between)
        if sequence:
            several = (S(1), None, None) if part == "self_attn" else (S(1),)
            plan[part] = PrepareModuleInput(input_layouts=several, desired_input_layouts=(
                R(), None, None) if part == "self_attn" else (R(),))
    # Of each head, whoever has it: its gradient is a sum over the axis.
    plan |= {f"self_attn.{name}": SequenceParallel(sequence_dim=2, use_local_output=True)
             for name in ("q_norm", "k_norm") if f"model.layers.0.self_attn.{name}" in present}
    if sequence:
        plan["input_layernorm"] = plan["post_attention_layernorm"] = SequenceParallel()
    for block in model.blocks():
        parallelize_module(block, mesh, plan)


def checkpointed(model, settings):
    every = {"none": 0, "full": 1, "every-2": 2}[settings["ac"]]
    if every == 0:
        return
    holder = model.model.layers if hasattr(model, "model") else model.transformer["h"]
    items = list(holder.items()) if hasattr(holder, "items") else list(enumerate(holder))
    for i, (name, block) in enumerate(items):
        if i % every == every - 1:  # as torchtitan counts them
            holder[name] = checkpoint_wrapper(block)


def sharded(model, meshes, settings, expert_mesh):
    """fully_shard as the settings have it; modules in the order of their units."""
    mesh = meshes.data()
    policy = MixedPrecisionPolicy()
    if settings.get("param_dtype") and settings["param_dtype"] != "fp32":
        policy = MixedPrecisionPolicy(param_dtype=TYPES[settings["param_dtype"]],
                                      reduce_dtype=TYPES[settings["reduce_dtype"]])
    after = settings["reshard_after_forward"]
    given = {"mesh": mesh, "mp_policy": policy}
    units = []
    wrap = settings["wrap"]
    ends = model.ends() if wrap in ("embed-head", "titan") else None
    if ends:
        units.append(fully_shard(ends[0], reshard_after_forward=after, **given))
    if wrap != "root":
        for block in model.blocks():
            if expert_mesh is not None:
                fully_shard(block.mlp.experts, mesh=expert_mesh, mp_policy=policy,
                            reshard_after_forward=after)
            units.append(fully_shard(block, reshard_after_forward=after, **given))
    if wrap == "embed-head":
        units.append(fully_shard(ends[2], reshard_after_forward=False, **given))
    if wrap == "titan":
        units.append(fully_shard([ends[1], ends[2]], reshard_after_forward=False, **given))
    root = {"reshard_after_forward": True} if settings.get("root_reshard") else {}
    fully_shard(model, **given, **root)
    return units


def prefetching(units, settings):
    if not settings.get("prefetch", "").startswith("explicit"):
        return
    ahead = 2
    for i, unit in enumerate(units):
        unit.set_modules_to_forward_prefetch(units[i + 1:i + 1 + ahead])
        unit.set_modules_to_backward_prefetch(units[max(0, i - ahead):i][::-1])


def optimizer_of(parameters, kind):
    if kind == "sgd":
        return torch.optim.SGD(parameters, lr=1e-4)
    return torch.optim.AdamW(parameters, lr=1e-4, **{kind: True})


def clip(parameters):
    """As torchtitan does it: parameters of one mesh at a time."""
    parts = {}
    for p in parameters:
        if p.grad is not None:
            mesh = p.grad.device_mesh if isinstance(p.grad, dtensor.DTensor) else None
            parts.setdefault(mesh, []).append(p)
    norms = []
    for some in parts.values():
        norm = torch.nn.utils.get_total_norm([p.grad for p in some], foreach=True)
        norms.append(norm.full_tensor() if isinstance(norm, dtensor.DTensor) else norm)
    for some in parts.values():
        torch.nn.utils.clip_grads_with_norm_(some, 1.0, norms[0], foreach=True)


def storages(tensors):
    found = {}
    for t in tensors:
        if t is None:
            continue
        local = t._local_tensor if isinstance(t, dtensor.DTensor) else t
        storage = local.untyped_storage()
        found[storage._cdata] = storage.nbytes()
    return found


class Held:
    """Bytes alive by the categories of the records, at a mark."""

    def __init__(self, recorder, model, optimizer, inputs):
        self.recorder, self.model = recorder, model
        self.optimizer, self.inputs = optimizer, inputs

    def groups(self):
        for module in self.model.modules():
            state = getattr(module, "_get_fsdp_state", lambda: None)()
            yield from getattr(state, "_fsdp_param_groups", [])

    def mark(self):
        state = state_of(self.optimizer)
        groups = list(self.groups())
        by_fsdp = [p for group in groups for p in group.fsdp_params]
        gathered = [t for p in by_fsdp for t in p.all_gather_outputs]
        gathered += [getattr(p, "_unsharded_param", None) for p in by_fsdp]
        kept = [p.sharded_param for p in by_fsdp] or list(self.model.parameters())
        # Gradients that are kept until their reduce-scatter is waited for.
        reduced = [held.reduce_scatter_input for group in groups
                   for held in group.comm_ctx.reduce_scatter_states]
        reduced += [group._all_reduce_state.all_reduce_input for group in groups
                    if group._all_reduce_state is not None]
        buffers = [getattr(self.model, name, None) for name in ("cos", "sin")]
        buffers += self.model.buffers()
        parts = {"unsharded_param": gathered, "sharded_param": kept,
                 "sharded_grad": [p.grad for p in kept],
                 "grad": [p.unsharded_accumulated_grad for p in by_fsdp], "opt_state": state,
                 "input": self.inputs, "buffer": buffers, "reduce_buffer": reduced}
        live = {key: count for key, (_, count) in self.recorder.storages.items()}
        marked = {"total": sum(live.values())}
        for name, tensors in parts.items():
            marked[name] = sum(live.pop(key, 0) for key in storages(tensors))
        marked["activation"] = sum(live.values())
        return marked


def state_of(optimizer):
    return [t for s in optimizer.state.values() for t in s.values() if isinstance(t, torch.Tensor)]


def record_of(case, settings, meshes, recorder, model, optimizer, memory):
    distinct, order = recorder.distinct_calls()
    named, padding = {}, []
    for name, p in model.named_parameters():
        name = name.replace("_checkpoint_wrapped_module.", "")
        local = p._local_tensor if isinstance(p, dtensor.DTensor) else p
        key = re.sub(r"(layers|h)\.\d+\.", r"\1.*.", name), tuple(p.shape), tuple(local.shape)
        named[key] = named.get(key, 0) + 1
        if isinstance(p, dtensor.DTensor):
            padding += [name for placed, size in zip(p.placements, p.device_mesh.shape)
                        if placed.is_shard(0) and p.shape[0] % size != 0]
    return {"id": case["id"], "model": case["model"], "world_size": case["world_size"],
            "rank": case["rank"], "mesh": meshes.listed, "strategy": {"settings": settings},
            "batch": {"per_rank": settings["batch"], "sequence": settings["seq"],
                      "microbatches": settings.get("microbatches", 1)},
            "params_local": [{"name": name, "shape": shape, "local": local, "count": count}
                             for (name, shape, local), count in named.items()],
            "padding": padding, "collectives": distinct, "order": [[order, 1]],
            "optimizer_state_bytes": sum(storages(state_of(optimizer)).values()),
            "memory": {"steps": [memory, memory]}}


def build(case, settings, meshes):
    m = case["model"]
    sequence = settings["seq"] // settings.get("cp", 1)
    group, expert_mesh = None, None
    if settings.get("ep", 1) > 1:
        group, expert_mesh = meshes.get("ep").get_group(), meshes.get("efsdp")
    if m["model_type"] == "gpt2":
        model = plain_modules.Gpt2(m)
    else:
        model = plain_modules.Llama(m, group=group, sequence=sequence)
    if settings["tp"] > 1:
        tensor_parallel(model, meshes.get("tp"), settings)
    if settings.get("cp", 1) > 1:
        for block in model.blocks():
            style = context._ContextParallel(2, context._ContextParallel.AttentionType.SDPA)
            parallelize_module(block.self_attn.inner, meshes.get("cp"), style)
        context._enable_context_parallel_dispatcher()
        context._dispatch_mode = context._DispatchMode.MODULE_WRAPPER
        context._cp_options.enable_load_balance = settings.get("cp_load_balance", True)
    checkpointed(model, settings)
    units = sharded(model, meshes, settings, expert_mesh)
    prefetching(units, settings)
    return model


def run(case):
    settings = case["settings"]
    torch.distributed.init_process_group("fake", store=FakeStore(), rank=case["rank"],
                                         world_size=case["world_size"])
    without_memory_of_shapes()
    see_resized_storages()
    meshes_have_data()
    name_parts_of_shards(settings["reshard_after_forward"])
    meshes = Meshes(case, settings)
    recorder = Recorder(meshes.names)
    sequence = settings["seq"] // settings.get("cp", 1)
    with FakeTensorMode(allow_non_fake_inputs=True), recorder:
        model = build(case, settings, meshes)
        optimizer = optimizer_of(model.parameters(), settings["optimizer"])
        microbatches = settings["microbatches"]
        shape = settings["batch"], sequence
        tokens = torch.zeros(shape, dtype=torch.int64)
        labels = torch.zeros(shape, dtype=torch.int64)
        held = Held(recorder, model, optimizer, [tokens, labels])
        for _ in range(settings["steps"]):
            recorder.start()
            memory = {"marks": {}}
            for i in range(microbatches):
                if microbatches > 1:  # as the records do; trainers leave it
                    model.set_is_last_backward(i == microbatches - 1)
                if settings.get("no_sync"):
                    model.set_requires_gradient_sync(i == microbatches - 1)
                recorder.phase = "forward"
                splits = settings["tp"] > 1 and settings["loss_parallel"]
                with loss_parallel() if splits else contextlib.nullcontext():
                    logits = model(tokens)
                    loss = functional.cross_entropy(logits.float().flatten(0, 1), labels.flatten())
                    del logits
                    memory["marks"]["after_forward"] = held.mark()
                    recorder.phase = "backward"
                    loss.backward()
            del loss
            memory["marks"]["after_backward"] = held.mark()
            if settings["clip"]:
                recorder.phase = "clip"
                clip(list(model.parameters()))
            recorder.phase = "optimizer"
            optimizer.step()
            memory["peak"] = held.mark() | {"total": recorder.peak}
            optimizer.zero_grad()
    return record_of(case, settings, meshes, recorder, model, optimizer, memory)


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(golden_steps.record_each(run))
