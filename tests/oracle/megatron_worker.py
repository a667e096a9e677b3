"""One training step of Megatron-Core on one rank, without devices: what it sends, in order, its
gradient buffers and what it holds.

    megatron_worker.py CASE.json RECORD.json

CASE has `model`, `settings`, `world_size` and `rank` as the records of tests/golden/megatron have them,
and RECORD is such a record, as far as megatron_golden_test reads it. Process groups are PyTorch's
`fake` ones and tensors have no data: nothing is sent or computed. What stands for what needs a GPU:

    device "cuda"                 the CPU, whose streams, events and random states do nothing
    Transformer Engine's norms    a norm with the same parameters and marks, kept as it keeps them
    its attention                 keeps q, k, v, its result and the logarithm of its sums
    Apex's fused weight gradient  adds to main_grad, here nothing
    routing                       every expert is sent the same number of rows
    coalesced calls               one by one
    the gradients' norm           is 0: nothing is scaled
"""

import contextlib
import dataclasses
import json
import sys
import types
import weakref

import numpy
import torch
import torch._dynamo  # before torch.cuda is replaced
import torch.distributed
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode


class Nothing:
    """A stream or an event of a device that has none."""

    def __init__(self, *args, **kwargs):
        pass

    def __getattr__(self, name):
        return lambda *args, **kwargs: None

    def record_event(self, *args):
        return Nothing()

    def __enter__(self):
        return self

    def __exit__(self, *args):
        return None


def no_devices():
    """torch.cuda as Megatron-Core uses it, on the CPU. Before megatron is imported."""
    cuda = torch.cuda
    cuda.current_device = lambda: "cpu"
    cuda.device_count = lambda: 8
    cuda.Stream = cuda.Event = Nothing
    cuda.stream = lambda stream: contextlib.nullcontext()
    cuda.current_stream = cuda.default_stream = lambda *args: Nothing()
    cuda.synchronize = cuda.empty_cache = cuda.set_device = lambda *args: None
    state = torch.zeros(16, dtype=torch.uint8)
    cuda.get_rng_state = cuda.random.get_rng_state = lambda *args, **kwargs: state
    cuda.set_rng_state = cuda.random.set_rng_state = lambda *args, **kwargs: None
    cuda.get_device_capability = lambda *args: (9, 0)
    cuda.memory_allocated = cuda.max_memory_allocated = lambda *args: 0
    cuda.nvtx = types.SimpleNamespace(range_push=lambda *a: None, range_pop=lambda *a: None)
    torch.Tensor.cuda = lambda self, *args, **kwargs: self
    torch.Tensor.record_stream = lambda self, stream: None
    kind = torch.Tensor.type
    torch.Tensor.type = (lambda self, dtype=None, **kwargs: kind(self, dtype, **kwargs) if dtype
                         else kind(self).replace("torch.cuda.", "torch.").replace("torch.", "torch.cuda."))
    # A norm; or AdamW's step, a number of tokens, a kind of mask.
    torch.Tensor.item = lambda self: 0 if self.dim() and self.is_floating_point() else 1
    torch.Tensor.__bool__ = lambda self: True
    torch.nn.Module.bfloat16 = in_bfloat16
    torch.compile = lambda function=None, **kwargs: function or (lambda inner: inner)
    fused = types.ModuleType("fused_weight_gradient_mlp_cuda")
    fused.wgrad_gemm_accum_fp32 = fused.wgrad_gemm_accum_fp16 = lambda inputs, grad, main: None
    sys.modules["fused_weight_gradient_mlp_cuda"] = fused


def in_bfloat16(module):
    """Most parameters are made so; tensors without data cannot be converted in place."""
    for part in module.modules():
        for name, parameter in part.named_parameters(recurse=False):
            if parameter.dtype == torch.float32:
                converted = torch.nn.Parameter(parameter.detach().bfloat16())
                converted.__dict__.update(parameter.__dict__)
                part.register_parameter(name, converted)
    return module


class OnCpu(TorchFunctionMode):
    """"cuda" as a device is the CPU."""

    def __torch_function__(self, func, types_, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        kwargs.pop("pin_memory", None)
        if "device" in kwargs and "cuda" in str(kwargs["device"]):
            kwargs["device"] = "cpu"
        if func is torch.Tensor.to:
            args = tuple("cpu" if isinstance(arg, (str, torch.device)) and "cuda" in str(arg) else arg
                         for arg in args)
        return func(*args, **kwargs)


KINDS = {"_allgather_base_": "all_gather", "_reduce_scatter_base_": "reduce_scatter",
         "allreduce_": "all_reduce", "alltoall_base_": "all_to_all", "send": "send",
         "recv_": "recv", "broadcast_": "broadcast", "allgather_": "all_gather",
         "reduce_scatter_": "reduce_scatter"}


def size(tensors):
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


class Recorder(TorchDispatchMode):
    """Calls of process groups in order, and bytes of the storages that live."""

    def __init__(self, groups):
        super().__init__()
        self.groups = groups  # the name of a group by its own
        self.calls = []
        self.phase = ""
        self.live = 0
        self.peak = 0
        self.storages = {}

    def __torch_dispatch__(self, func, types_, args=(), kwargs=None):
        namespace, name = str(func).split(".")[:2]
        if namespace == "c10d":
            self.call(name, args)
        result = func(*args, **(kwargs or {}))
        for leaf in torch.utils._pytree.tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                self.see(leaf)
        return result

    def see(self, tensor):
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self.storages:
            return
        count = storage.nbytes()
        self.live += count
        self.peak = max(self.peak, self.live)

        def gone(_, key=key, count=count):
            if self.storages.pop(key, None) is not None:
                self.live -= count
        self.storages[key] = weakref.ref(storage, gone)

    def call(self, name, args):
        kind = KINDS[name]
        leaves = torch.utils._pytree.tree_leaves(args)
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        group = next(leaf for leaf in leaves if isinstance(leaf, torch.ScriptObject))
        group = torch.distributed.ProcessGroup.unbox(group)
        if group.size() == 1:
            return
        if kind == "reduce_scatter" or kind == "all_gather" or kind == "all_to_all":
            whole_out = name in ("allgather_", "reduce_scatter_")
            if whole_out:
                outputs = [t for t in torch.utils._pytree.tree_leaves(args[0])]
                inputs = [t for t in torch.utils._pytree.tree_leaves(args[1])]
            else:
                outputs, inputs = [tensors[0]], [tensors[1]]
        else:
            outputs = inputs = tensors[:1]
        self.calls.append({"phase": self.phase, "kind": kind, "axis": self.groups[group.group_name],
                           "group_size": group.size(), "bytes_in": size(inputs),
                           "bytes_out": size(outputs)})


class Norm(torch.autograd.Function):
    """Transformer Engine's: keeps its input and a number (two with means) of fp32 a row."""

    @staticmethod
    def forward(ctx, x, weight, bias, means):
        numbers = [x.new_empty(x.shape[:-1], dtype=torch.float32) for _ in range(2 if means else 1)]
        ctx.save_for_backward(x, weight, *numbers)
        ctx.biased = bias is not None
        return torch.empty_like(x)

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors[:2]
        return (torch.empty_like(x), torch.empty_like(weight),
                torch.empty_like(weight) if ctx.biased else None, None)


class NormModule(torch.nn.Module):
    def __init__(self, config, hidden_size, eps=1e-5, **_):
        super().__init__()
        self.means = config.normalization == "LayerNorm"
        self.weight = torch.nn.Parameter(torch.empty(hidden_size, dtype=config.params_dtype))
        self.bias = (torch.nn.Parameter(torch.empty(hidden_size, dtype=config.params_dtype))
                     if self.means else None)
        for parameter in self.parameters():
            parameter.sequence_parallel = config.sequence_parallel

    def forward(self, x):
        return Norm.apply(x, self.weight, self.bias, self.means)


class Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, width):
        out = q.new_empty(q.shape[:2] + (width,))
        sums = q.new_empty((q.shape[1], q.shape[2], q.shape[0]), dtype=torch.float32)
        ctx.save_for_backward(q, k, v, out, sums)
        return out

    @staticmethod
    def backward(ctx, grad):
        q, k, v = ctx.saved_tensors[:3]
        return torch.empty_like(q), torch.empty_like(k), torch.empty_like(v), None


class AttentionModule(torch.nn.Module):
    def __init__(self, config, *args, **kwargs):
        super().__init__()

    def forward(self, query, key, value, *args, **kwargs):
        return Attention.apply(query, key, value, query.shape[2] * value.shape[3])


class Chosen(torch.autograd.Function):
    """The probabilities of what is sent, one a row."""

    @staticmethod
    def forward(ctx, probs, routing_map, rows):
        ctx.save_for_backward(routing_map)
        ctx.shape = probs.shape
        return probs.new_empty(rows)

    @staticmethod
    def backward(ctx, grad):
        return grad.new_empty(ctx.shape), None, None


class Sorted(torch.autograd.Function):
    """Rows in another order: nothing is kept."""

    @staticmethod
    def forward(ctx, rows):
        return torch.empty_like(rows)

    @staticmethod
    def backward(ctx, grad):
        return torch.empty_like(grad)


def even_experts(config):
    """Rows as if every expert were sent as many."""
    from megatron.core.transformer.moe import experts, moe_utils, token_dispatcher
    original = moe_utils.permute

    def permute(tokens, routing_map, probs=None, num_out_tokens=None, fused=False,
                drop_and_pad=False):
        if drop_and_pad:
            return original(tokens, routing_map, probs, num_out_tokens, fused, drop_and_pad)
        if isinstance(num_out_tokens, torch.Tensor):  # by all-gather: rows of the local experts
            num_out_tokens = (routing_map.shape[0] * config.moe_router_topk
                              * routing_map.shape[1] // config.num_moe_experts)
        indices = torch.empty(num_out_tokens, dtype=torch.int64)
        chosen = Chosen.apply(probs, routing_map, num_out_tokens) if probs is not None else None
        return tokens.index_select(0, indices), chosen, indices

    def sort_chunks(input, split_sizes, sorted_idxs, probs=None, fused=False):
        return Sorted.apply(input), Sorted.apply(probs) if probs is not None else None

    token_dispatcher.permute = permute
    token_dispatcher.sort_chunks_by_idxs = sort_chunks
    dispatcher = token_dispatcher.MoEAlltoAllTokenDispatcher
    move = dispatcher._maybe_dtoh_and_synchronize

    def to_host(self, point, tokens_per_expert=None):
        if self.drop_and_pad:
            return numpy.full(self.num_local_experts,
                              self.capacity * self.tp_size * self.ep_size)
        if point == self.cuda_dtoh_point:
            rows = self.routing_map.shape[0] * config.moe_router_topk
            self.num_out_tokens = rows
            if self.ep_size > 1 or self.tp_size > 1:
                self.input_splits = numpy.full(self.ep_size, rows // self.ep_size)
                self.output_splits = numpy.full(self.ep_size, rows // self.ep_size)
                self.output_splits_tp = numpy.full(self.tp_size, rows)
            return numpy.full(self.num_local_experts,
                              rows * self.tp_size * self.ep_size // self.num_experts)
        return tokens_per_expert

    del move
    dispatcher._maybe_dtoh_and_synchronize = to_host
    masked = torch.Tensor.masked_select

    def masked_select(self, mask):
        rows = self.shape[1] * config.moe_router_topk * self.shape[0] // config.num_moe_experts
        return Chosen.apply(self, mask, rows)

    del masked
    torch.Tensor.masked_select = masked_select
    forward = experts.SequentialMLP.forward

    def sequential(self, rows, tokens_per_expert, probs):
        if isinstance(tokens_per_expert, torch.Tensor):
            tokens_per_expert = numpy.full(self.num_local_experts,
                                           rows.shape[0] // self.num_local_experts)
        return forward(self, rows, tokens_per_expert, probs)

    experts.SequentialMLP.forward = sequential


def transformer_config(model, settings):
    from megatron.core.transformer import MLATransformerConfig, TransformerConfig
    layers = settings["layers"] or model["num_layers"]
    given = dict(
        num_layers=layers, hidden_size=model["hidden_size"], ffn_hidden_size=model["ffn_hidden_size"],
        num_attention_heads=model["num_attention_heads"], num_query_groups=model["num_query_groups"],
        normalization=model["normalization"], gated_linear_unit=model["gated_linear_unit"],
        activation_func=torch.nn.functional.silu if model["gated_linear_unit"]
        else torch.nn.functional.gelu,
        add_bias_linear=model["add_bias_linear"], bias_activation_fusion=True,
        bias_dropout_fusion=True, apply_rope_fusion=False, masked_softmax_fusion=False,
        attention_dropout=0.0, hidden_dropout=0.0, persist_layer_norm=False, bf16=True,
        params_dtype=torch.bfloat16, pipeline_dtype=torch.bfloat16,
        tensor_model_parallel_size=settings["tp"], pipeline_model_parallel_size=settings["pp"],
        virtual_pipeline_model_parallel_size=settings["vpp"],
        context_parallel_size=settings["cp"], expert_model_parallel_size=settings["ep"],
        sequence_parallel=settings["sp"], perform_initialization=False,
        gradient_accumulation_fusion=settings["wgrad_fusion"],
        cross_entropy_loss_fusion=settings["ce_fusion"],
        calculate_per_token_loss=settings["per_token"],
        deallocate_pipeline_outputs=True, batch_p2p_comm=settings["vpp"] is None,
        overlap_p2p_comm=settings["vpp"] is not None, batch_p2p_sync=False,
        microbatch_group_size_per_vp_stage=settings["group"] or settings["pp"],
        num_layers_in_first_pipeline_stage=settings["first"],
        num_layers_in_last_pipeline_stage=settings["last"],
        account_for_embedding_in_pipeline_split=settings["emb_split"],
        account_for_loss_in_pipeline_split=settings["loss_split"],
        mtp_num_layers=settings["mtp"] or None, qk_layernorm=model.get("qk_layernorm", False))
    if settings["etp"] is not None:
        given["expert_tensor_parallel_size"] = settings["etp"]
    if settings["layout"]:
        given["pipeline_model_parallel_layout"] = settings["layout"]
    if model.get("kv_channels"):
        given["kv_channels"] = model["kv_channels"]
    for key, value in model.items():
        if key.startswith("moe_") or key == "num_moe_experts":
            given[key] = value
    if model.get("num_moe_experts"):
        given.update(moe_token_dispatcher_type=settings["dispatcher"], moe_grouped_gemm=False,
                     moe_shared_expert_overlap=settings["shared_overlap"])
        if settings["capacity"] is not None:
            given.update(moe_expert_capacity_factor=settings["capacity"],
                         moe_pad_expert_input_to_capacity=True)
    if settings["recompute"] == "full":
        given.update(recompute_granularity="full", recompute_method="uniform",
                     recompute_num_layers=1)
    elif settings["recompute"]:
        given.update(recompute_granularity="selective", recompute_modules=settings["recompute"])
    kind = TransformerConfig
    if model.get("multi_latent_attention"):
        kind = MLATransformerConfig
        given.update(multi_latent_attention=True, rope_type="rope")
        for key in ("q_lora_rank", "kv_lora_rank", "qk_head_dim", "qk_pos_emb_head_dim", "v_head_dim"):
            given[key] = model[key]
    known = {field.name for field in dataclasses.fields(kind)}
    unknown = set(given) - known
    assert not unknown, unknown
    return kind(**given)


def padded(vocabulary, tensor):
    multiple = 128 * tensor
    return -(-vocabulary // multiple) * multiple


def build_chunk(config, model, settings, chunk, pre, post):
    from megatron.core.models.gpt import GPTModel
    from megatron.core.models.gpt import gpt_layer_specs as specs
    if model.get("num_moe_experts"):
        layers = specs.get_gpt_decoder_block_spec(config, use_transformer_engine=False,
                                                  normalization=model["normalization"],
                                                  vp_stage=chunk)
    else:
        layers = specs.get_gpt_layer_local_spec(
            qk_layernorm=config.qk_layernorm,
            multi_latent_attention=bool(model.get("multi_latent_attention")),
            normalization=model["normalization"])
    more = {}
    if settings["mtp"]:
        more["mtp_block_spec"] = specs.get_gpt_mtp_block_spec(
            config, layers, use_transformer_engine=False, vp_stage=chunk)
    tied = settings["tied"] if settings["tied"] is not None else not model["untie"]
    return GPTModel(
        config=config, transformer_layer_spec=layers,
        vocab_size=padded(model["vocab_size"], settings["tp"]),
        max_sequence_length=model.get("max_position_embeddings", settings["seq"]), pre_process=pre, post_process=post,
        parallel_output=True, share_embeddings_and_output_weights=tied,
        position_embedding_type=model["position_embedding_type"], vp_stage=chunk, **more)


def named_groups():
    """The ranks of each group of this rank, and a name for each set of ranks, as records have them."""
    from megatron.core import parallel_state as state
    named = {
        "tp": state.get_tensor_model_parallel_group(), "pp": state.get_pipeline_model_parallel_group(),
        "cp": state.get_context_parallel_group(), "ep": state.get_expert_model_parallel_group(),
        "expt_tp": state.get_expert_tensor_parallel_group(),
        "tp_ep": state.get_expert_tensor_and_model_parallel_group(),
        "dp_cp": state.get_data_parallel_group(with_context_parallel=True),
        "dp": state.get_data_parallel_group(),
        "expt_dp": state.get_expert_data_parallel_group(),
        "intra_dp_cp": state.get_data_parallel_group(with_context_parallel=True,
                                                     partial_data_parallel=True),
        "intra_expt_dp": state.get_expert_data_parallel_group(partial_expert_data_parallel=True),
        "tp_cp": state.get_tensor_and_context_parallel_group(),
        "tp_dp_cp": state.get_tensor_and_data_parallel_group(with_context_parallel=True),
        "mp": state.get_model_parallel_group(),
        "embd": state.get_embedding_group(check_initialized=False),
        "pos_embd": state.get_position_embedding_group(check_initialized=False),
    }
    named["inter_dist_opt"] = state.get_inter_distributed_optimizer_instance_group(
        check_initialized=False)
    named["intra_dist_opt"] = state.get_intra_distributed_optimizer_instance_group()
    ranks, names = {}, {torch.distributed.group.WORLD.group_name: "world"}
    for name, group in named.items():
        groups = group if isinstance(group, list) else [group]
        for one in groups:
            if one is not None and one is not torch.distributed.GroupMember.NON_GROUP_MEMBER:
                ranks[name] = torch.distributed.get_process_group_ranks(one)
                names.setdefault(one.group_name, name)
    return ranks, names


def step(chunks, optimizer, config, settings, recorder, sequence):
    from megatron.core.distributed import finalize_model_grads
    from megatron.core.pipeline_parallel import get_forward_backward_func
    config.finalize_model_grads_func = finalize
    size = settings["mbs"]

    def loss(output):
        tokens = torch.empty((), dtype=torch.int32)
        total = output.sum()
        if settings["per_token"]:
            return total, tokens, {}
        return total / settings["seq"], {}

    def forward(iterator, chunk):
        tokens = torch.zeros((size, sequence), dtype=torch.int64)
        labels = torch.zeros((size, sequence), dtype=torch.int64)
        positions = torch.zeros((size, sequence), dtype=torch.int64)
        recorder.phase = "forward"
        output = chunk(tokens, positions, None, labels=labels)
        return output, loss

    for chunk in chunks:
        chunk.zero_grad_buffer()
    optimizer.zero_grad()
    recorder.phase = "backward"
    get_forward_backward_func()(
        forward_step_func=forward, data_iterator=[None] * len(chunks) if len(chunks) > 1 else None,
        model=chunks if len(chunks) > 1 else chunks[0], num_microbatches=settings["microbatches"],
        seq_length=settings["seq"], micro_batch_size=size, forward_only=False)
    recorder.phase = "optimizer"
    optimizer.step()


def finalize(*args, **kwargs):
    from megatron.core.distributed import finalize_model_grads
    return finalize_model_grads(*args, **kwargs)


def same_objects(gathered, own, group=None):
    """What every rank has is what this one has."""
    gathered[:] = [own] * len(gathered)


def main():
    case_path, record_path = sys.argv[1:]
    with open(case_path) as file:
        case = json.load(file)
    model, settings = case["model"], case["settings"]
    no_devices()
    torch.set_num_threads(1)
    torch.distributed.init_process_group("fake", store=FakeStore(), rank=case["rank"],
                                         world_size=case["world_size"])
    torch.distributed._coalescing_manager = lambda *args, **kwargs: contextlib.nullcontext(Nothing())
    torch.distributed.distributed_c10d._coalescing_manager = torch.distributed._coalescing_manager
    torch.distributed.all_gather_object = same_objects
    torch.distributed.barrier = lambda *args, **kwargs: None
    record = run(case, model, settings)
    with open(record_path, "w") as file:
        json.dump(record, file)


def run(case, model, settings):
    from megatron.core import parallel_state as state
    from megatron.core import tensor_parallel
    from megatron.core.models import backends
    backends.LocalSpecProvider.layer_norm = lambda self, rms_norm=False, for_qk=False: NormModule
    backends.LocalSpecProvider.core_attention = lambda self: AttentionModule
    from megatron.core.transformer import transformer_block
    transformer_block.LayerNormImpl = NormModule
    from megatron.core.models.gpt import gpt_layer_specs
    gpt_layer_specs.LNImpl = NormModule
    from megatron.core.extensions import transformer_engine
    transformer_engine.te_general_gemm = None
    from megatron.core.transformer.moe import moe_utils
    moe_utils.te_general_gemm = None
    from megatron.core.transformer import multi_latent_attention
    multi_latent_attention.TELinear = type(None)
    from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig
    from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
    from megatron.core.optimizer import clip_grads
    clip_grads.l2_norm_impl = lambda *args: (torch.zeros(1), None)
    from megatron.core.distributed import param_and_grad_buffer
    param_and_grad_buffer._coalescing_manager = torch.distributed._coalescing_manager
    state.initialize_model_parallel(
        settings["tp"], settings["pp"], settings["vpp"], context_parallel_size=settings["cp"],
        expert_model_parallel_size=settings["ep"], expert_tensor_parallel_size=settings["etp"],
        num_distributed_optimizer_instances=settings["instances"], create_gloo_process_groups=False)
    groups, names = named_groups()
    recorder = Recorder(names)
    with FakeTensorMode(allow_non_fake_inputs=True), OnCpu(), recorder:
        tensor_parallel.model_parallel_cuda_manual_seed(1)
        config = transformer_config(model, settings)
        if model.get("num_moe_experts"):
            even_experts(config)
        chunks = build(case, config, model, settings, DistributedDataParallel,
                       DistributedDataParallelConfig)
        optimizer = get_megatron_optimizer(
            OptimizerConfig(optimizer="adam", lr=1e-4, bf16=True, params_dtype=torch.bfloat16,
                            use_distributed_optimizer=settings["dist_opt"],
                            clip_grad=settings["clip"],
                            overlap_param_gather=settings["overlap_param"]), chunks,
            use_gloo_process_groups=False)
        config.grad_scale_func = optimizer.scale_loss
        if settings["overlap_grad"]:  # as training.py has them, align_grad_reduce by default
            one = len(chunks) == 1
            config.no_sync_func = chunks[0].no_sync if one else [c.no_sync for c in chunks]
            config.grad_sync_func = (chunks[0].start_grad_sync if one
                                     else [c.start_grad_sync for c in chunks])
        sequence = settings["seq"] // settings["cp"]
        step(chunks, optimizer, config, settings, recorder, sequence)
        recorder.calls.clear()
        recorder.peak = recorder.live
        step(chunks, optimizer, config, settings, recorder, sequence)
    return record_of(case, model, settings, groups, chunks, recorder)


def build(case, config, model, settings, ddp, ddp_config):
    from megatron.core import parallel_state as state
    chunks = []
    pipeline = settings["pp"]
    rank = state.get_pipeline_model_parallel_rank()
    for chunk in range(settings["vpp"] or 1):
        pre = rank == 0 and chunk == 0
        post = rank == pipeline - 1 and chunk == (settings["vpp"] or 1) - 1
        module = build_chunk(config, model, settings, chunk if settings["vpp"] else None, pre, post)
        from megatron.core.transformer.module import Float16Module
        module = Float16Module(config, module)
        chunks.append(module)
    wrapped = []
    for index, module in enumerate(chunks):
        wrapped.append(ddp(
            config=config,
            ddp_config=ddp_config(
                grad_reduce_in_fp32=settings["grad_fp32"], overlap_grad_reduce=settings["overlap_grad"],
                overlap_param_gather=settings["overlap_param"],
                align_param_gather=False, use_distributed_optimizer=settings["dist_opt"],
                num_distributed_optimizer_instances=settings["instances"],
                bucket_size=settings["bucket_size"], average_in_collective=settings["avg"],
                pad_buckets_for_high_nccl_busbw=settings["busbw"]),
            module=module, disable_bucketing=index > 0))
    return wrapped


def record_of(case, model, settings, groups, chunks, recorder):
    seen, order, distinct = {}, [], []
    for call in recorder.calls:
        key = json.dumps(call)
        if key not in seen:
            seen[key] = len(distinct)
            distinct.append(call)
        order.append(seen[key])
    data = case["world_size"] // (settings["tp"] * settings["pp"] * settings["cp"])
    experts = (settings["etp"] or settings["tp"]) * settings["ep"] * settings["pp"]
    params = sum(b.param_data.nbytes if b.param_data is not None else 0
                 for c in chunks for b in c.buffers + c.expert_parallel_buffers)
    if not params:
        params = size(list(p for c in chunks for p in c.parameters()))
    buffers = []
    for index, chunk in enumerate(chunks):
        for kind, held in (("dense", chunk.buffers), ("expert", chunk.expert_parallel_buffers)):
            for buffer in held:
                buffers.append({"chunk": index, "buffer": kind, "buckets": [
                    {"numel": bucket.grad_data.numel()} for bucket in buffer.buckets]})
    grads = sum(b.grad_data.nbytes for c in chunks for b in c.buffers + c.expert_parallel_buffers)
    return {"id": case["id"], "model": model, "world_size": case["world_size"], "rank": case["rank"],
            "mesh": [["pp", settings["pp"]], ["dp", data], ["cp", settings["cp"]], ["tp", settings["tp"]]],
            "expert_mesh": [["pp", settings["pp"]], ["expt_dp", case["world_size"] // experts],
                            ["ep", settings["ep"]], ["expt_tp", settings["etp"] or settings["tp"]]],
            "groups": groups, "strategy": {"settings": settings},
            "batch": {"micro_batch": settings["mbs"], "sequence": settings["seq"],
                      "microbatches": settings["microbatches"]},
            "buffers": buffers, "collectives": distinct, "order": [[order, 1]],
            "memory": {"marks": {"step2 end": {"params": params, "grad_buffer": grads}},
                       "peak": {"total": recorder.peak}}}


if __name__ == "__main__":
    main()
