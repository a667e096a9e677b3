"""What stands for a GPU, Transformer Engine and Apex where Megatron-Core is run without them:

    device "cuda"                 the CPU, whose streams, events and random states do nothing
    Transformer Engine's norms    a norm with the same parameters and marks, kept as it keeps them
    its attention                 keeps q, k, v, its result and the logarithm of its sums
    its optimizer                 writes in place
    Apex's fused weight gradient  adds to main_grad, here nothing
    routing                       every expert is sent the same number of rows
    torch.compile                 what is compiled leaves its results alone in memory
    its types of 8 bits           are off
    coalesced calls               one by one
    the gradients' norm           is 0: nothing is scaled
"""

import contextlib
import sys
import types

import numpy
import torch
import torch._dynamo  # before torch.cuda is replaced
import torch.distributed
from torch.overrides import TorchFunctionMode

from call_recorder import as_one_kernel


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
    # A norm; or a number of tokens, a kind of mask.
    torch.Tensor.item = lambda self: 0 if self.dim() and self.is_floating_point() else 1
    torch.Tensor.__bool__ = lambda self: True
    torch.nn.Module.bfloat16 = in_bfloat16
    torch.optim.AdamW.step = update_in_place
    torch.compile = lambda function=None, **kwargs: (as_one_kernel(function) if function
                                                     else as_one_kernel)
    torch.distributed._coalescing_manager = lambda *args, **kwargs: contextlib.nullcontext(Nothing())
    torch.distributed.all_gather_object = same_objects
    torch.distributed.barrier = lambda *args, **kwargs: None
    fused = types.ModuleType("fused_weight_gradient_mlp_cuda")
    fused.wgrad_gemm_accum_fp32 = fused.wgrad_gemm_accum_fp16 = lambda inputs, grad, main: None
    sys.modules["fused_weight_gradient_mlp_cuda"] = fused


def same_objects(gathered, own, group=None):
    """What every rank has is what this one has."""
    gathered[:] = [own] * len(gathered)


def update_in_place(optimizer, closure=None):
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            state = optimizer.state[parameter]
            if parameter.grad is not None and not state:
                state["exp_avg"] = torch.zeros_like(parameter)
                state["exp_avg_sq"] = torch.zeros_like(parameter)


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

    dispatcher._maybe_dtoh_and_synchronize = to_host
    def masked_select(self, mask):
        rows = self.shape[1] * config.moe_router_topk * self.shape[0] // config.num_moe_experts
        return Chosen.apply(self, mask, rows)

    torch.Tensor.masked_select = masked_select
    forward = experts.SequentialMLP.forward

    def sequential(self, rows, tokens_per_expert, probs):
        if isinstance(tokens_per_expert, torch.Tensor):
            tokens_per_expert = numpy.full(self.num_local_experts,
                                           rows.shape[0] // self.num_local_experts)
        return forward(self, rows, tokens_per_expert, probs)

    experts.SequentialMLP.forward = sequential


def take_places():
    """In Megatron-Core's modules, once they are imported."""
    from megatron.core.distributed import param_and_grad_buffer
    from megatron.core.models import backends
    from megatron.core.models.gpt import gpt_layer_specs
    from megatron.core.optimizer import clip_grads
    from megatron.core.tensor_parallel import random
    from megatron.core.transformer import multi_latent_attention, transformer_block
    from megatron.core.transformer.moe import moe_utils
    backends.LocalSpecProvider.layer_norm = lambda self, rms_norm=False, for_qk=False: NormModule
    backends.LocalSpecProvider.core_attention = lambda self: AttentionModule
    transformer_block.LayerNormImpl = gpt_layer_specs.LNImpl = NormModule
    moe_utils.te_general_gemm = None
    multi_latent_attention.TELinear = type(None)
    random.FP8GlobalStateManager = types.SimpleNamespace(is_fp8_enabled=lambda: False)
    random.activation_recompute_forward = lambda **_: contextlib.nullcontext()
    random.fp8_autocast = lambda **_: contextlib.nullcontext()
    clip_grads.l2_norm_impl = lambda *args: (torch.zeros(1), None)
    param_and_grad_buffer._coalescing_manager = torch.distributed._coalescing_manager
