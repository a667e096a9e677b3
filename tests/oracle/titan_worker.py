"""One training step of torchtitan's own models, parallelize functions, losses and clipping on one
rank, without devices: what it sends, in order, and what it holds.

    titan_worker.py CASE.json RECORD.json ...

CASE has `model`, `settings`, `world_size` and `rank` as the records of tests/golden/torch/torchtitan
have them, and RECORD is such a record, as far as torch_golden_test reads it. Process groups are
PyTorch's `fake` ones, tensors have no data. Attention and norm are the kernels of a GPU by their
names: FlexAttention is flash attention of whole sequences; every expert gets as many tokens as every
other; biases of the routing do not move.
"""

import importlib
import logging
import sys

import torch
import torch.distributed
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed.tensor import DTensor
from torch.testing._internal.distributed.fake_pg import FakeStore

import fully_shard_worker
import golden_steps
from call_recorder import Recorder
from plain_modules import FusedNorm

import torchtitan.tools.utils as titan_tools

titan_tools.device_type = "cpu"  # before others import it
logging.disable(logging.CRITICAL)

from torchtitan.components.loss import ChunkedLossWrapper, CrossEntropyLoss  # noqa: E402
from torchtitan.config import CompileConfig, DebugConfig, ParallelismConfig  # noqa: E402
from torchtitan.config import TrainingConfig  # noqa: E402
from torchtitan.distributed import ParallelDims, activation_checkpoint  # noqa: E402
from torchtitan.distributed import utils as dist_utils  # noqa: E402
from torchtitan.distributed.context_parallel import prepare_context_parallel_input  # noqa: E402
from torchtitan.distributed.full_dtensor import parallelize_inputs  # noqa: E402
from torchtitan.distributed.spmd_types import annotate_input_spmd_types  # noqa: E402
from torchtitan.models.common import attention, rope, token_dispatcher  # noqa: E402
from torchtitan.trainer import Trainer  # noqa: E402

CHECKPOINTS = {"none": lambda: None, "full": activation_checkpoint.FullAC.Config,
               "selective": activation_checkpoint.SelectiveAC.Config}


def kernels_of_a_gpu():
    def flash(self, q_BLNH, k_BLNH, v_BLNH, *, out_transform=None, **_):
        q, k, v = (x.transpose(1, 2) for x in (q_BLNH, k_BLNH, v_BLNH))
        out, sums = torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, 0.0, True)[:2]
        out, sums = out.transpose(1, 2), sums.transpose(1, 2)
        return out_transform(out, sums) if out_transform else out

    def norm(x, shape, weight=None, eps=None):
        # Where a gradient may come as a sum, what becomes of it is a rule of the kernel's.
        if isinstance(x, DTensor) and any(p.is_replicate() for p in x.placements):
            return torch.ops.aten._fused_rms_norm(x, shape, weight, eps)[0]
        return FusedNorm.apply(x, weight)
    attention.FlexAttention.forward = flash
    torch.nn.functional.rms_norm = norm


def values_are_not_looked_at():
    rope._maybe_check_max_pos = lambda *args, **kwargs: None

    def balanced(self, local, everywhere, ways):
        everywhere = torch.ops._c10d_functional.wait_tensor(everywhere).reshape(-1)
        rows = [self.rows // ways] * ways
        return everywhere, rows, rows
    dispatcher = token_dispatcher.AllToAllTokenDispatcher
    dispatcher._sync_token_count_exchange = balanced
    inner = dispatcher._local_reorder

    def counted(self, x, scores, chosen):
        self.rows = chosen.numel()
        return inner(self, x, scores, chosen)
    dispatcher._local_reorder = counted


class Meshes:
    """Of torchtitan, and the names that the records have for their groups."""

    def __init__(self, dims, settings):
        dims.build_mesh()
        sizes = {axis: settings[axis] for axis in ("dp_replicate", "dp_shard", "cp", "tp")}
        self.listed = [[axis, size] for axis, size in sizes.items() if size > 1]
        shard = "_".join(axis for axis in ("dp_shard", "cp") if sizes[axis] > 1) or "dp_shard"
        named = {"dp_replicate": "dp_replicate", "dp_shard": "dp_shard", "fsdp": shard, "cp": "cp",
                 "tp": "tp"}
        if settings["ep"] > 1:
            named |= {"ep": "ep", "efsdp": "efsdp"}
            ranks = sizes["dp_shard"] * sizes["cp"] * sizes["tp"]
            self.listed += [["ep", settings["ep"]], ["efsdp", ranks // settings["ep"]]]
        names = {}
        for axis, name in named.items():
            if axis in dims._single_axis_meshes:  # those of the same ranks are one group
                group = dims._single_axis_meshes[axis].get_group().group_name
                names.setdefault(group, name)
        self.names = Groups(names, shard)


class Groups(dict):
    """Names of groups by their own; of one that is made on the way, that of one of the same ranks."""

    def __init__(self, names, others):
        super().__init__(names)
        self.others = others

    def __missing__(self, name):
        ranks = ranks_of(name)
        return next((axis for known, axis in self.items() if ranks_of(known) == ranks), self.others)


def ranks_of(group_name):
    group = torch.distributed.distributed_c10d._resolve_process_group(group_name)
    return torch.distributed.get_process_group_ranks(group)


def trainer_config(settings):
    parallelism = ParallelismConfig(
        data_parallel_replicate_degree=settings["dp_replicate"],
        data_parallel_shard_degree=settings["dp_shard"],
        fsdp_reshard_after_forward=settings["reshard"], tensor_parallel_degree=settings["tp"],
        context_parallel_degree=settings["cp"], expert_parallel_degree=settings["ep"],
        spmd_backend=settings["backend"])
    training = TrainingConfig(local_batch_size=settings["batch"], seq_len=settings["seq"],
                              disable_cuda_graphs=True)
    family = importlib.import_module("torchtitan.models." + settings["family"])
    spec = family.model_registry(settings["flavor"], attn_backend="flex")
    spec.model.layers = spec.model.layers[:settings.get("layers")]
    return Trainer.Config(model_spec=spec, training=training, parallelism=parallelism,
                          debug=DebugConfig(moe_force_load_balance=False))


def run(case):
    settings = case["settings"]
    torch.distributed.init_process_group("fake", store=FakeStore(), rank=case["rank"],
                                         world_size=case["world_size"])
    kernels_of_a_gpu()
    values_are_not_looked_at()
    fully_shard_worker.without_memory_of_shapes()
    fully_shard_worker.see_resized_storages()
    fully_shard_worker.meshes_have_data()
    dist_utils.set_spmd_backend(settings["backend"])
    config = trainer_config(settings)
    dims = ParallelDims.from_config(config.parallelism, case["world_size"])
    meshes = Meshes(dims, settings)
    spec = config.model_spec
    spec.model.update_from_config(config=config)
    recorder = Recorder(meshes.names)
    with torch.device("meta"):
        model = spec.model.build()
    with FakeTensorMode(allow_non_fake_inputs=True), recorder:
        model = spec.parallelize_fn(model, parallel_dims=dims, training=config.training,
                                    parallelism=config.parallelism, compile_config=CompileConfig(),
                                    ac_config=CHECKPOINTS[settings["ac"]](), dump_folder="")
        model.to_empty(device="cpu")
        if model.enable_weight_tying:  # Decoder.init_states
            model.tok_embeddings.weight = model.lm_head.weight
        memory = steps(settings, dims, model, recorder)
    return fully_shard_worker.record_of(case, settings, meshes, recorder, *memory)


def inputs_of(settings, dims):
    shape = settings["batch"], settings["seq"]
    tokens, labels, positions = (torch.zeros(shape, dtype=torch.int64) for _ in range(3))
    more = {"positions": positions}
    if settings["cp"] > 1:
        tokens, labels, more = prepare_context_parallel_input(
            tokens, labels, more, dims.get_mesh("cp"), torch.device("cpu"), "headtail")
    if settings["backend"] == "full_dtensor":
        return parallelize_inputs(dims, tokens, labels, more)
    if settings["backend"] == "spmd_types":
        return annotate_input_spmd_types(dims, tokens, labels, more)
    return tokens, labels, more


def steps(settings, dims, model, recorder):
    loss = CrossEntropyLoss.Config(global_vocab_size=model.config.vocab_size)
    if settings["loss"] == "chunked":
        loss_fn = ChunkedLossWrapper.Config(loss_fn=loss).build()
        loss_fn.set_lm_head(model.lm_head)
        model._skip_lm_head = True
    else:
        loss_fn = loss.build()
    optimizer = fully_shard_worker.optimizer_of(model.parameters(), settings["optimizer"])
    within = dist_utils.get_spmd_context(parallel_dims=dims)
    tokens, labels, more = inputs_of(settings, dims)
    valid = torch.zeros((), dtype=torch.int64)
    held = fully_shard_worker.Held(recorder, model, optimizer, [tokens, labels, *more.values()])
    for _ in range(settings["steps"]):
        recorder.start()
        memory = {"marks": {}}
        for _ in range(settings.get("microbatches", 1)):
            recorder.phase = "forward"
            with within():
                predicted = model(tokens, **more)
                loss, _ = loss_fn(predicted, labels, valid, **more)
                del predicted
                memory["marks"]["after_forward"] = held.mark()
                recorder.phase = "backward"
                loss.backward()
            del loss
        memory["marks"]["after_backward"] = held.mark()
        recorder.phase = "clip"
        dist_utils.clip_grad_norm_(list(model.parameters()), 1.0, foreach=True,
                                   ep_enabled=dims.ep_enabled)
        recorder.phase = "optimizer"
        optimizer.step()
        memory["peak"] = held.mark() | {"total": recorder.peak}
        optimizer.zero_grad()
    return model, optimizer, memory


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(golden_steps.record_each(run))
