"""Stand-ins for kernels that models of transformers call on CUDA devices where their packages are
installed: results without data, and for the backward pass the tensors that the packages keep.

    mamba_ssm        selective_scan_interface.py, SelectiveScanFn: what does not lie along the sequence
                     is copied; states every 2,048 tokens
    causal_conv1d    causal_conv1d_interface.py, CausalConv1dFn
    RWKV             transformers 5.23.0, modeling_rwkv.py, RwkvLinearAttention
    mlstm_kernels    kernels in chunks with a backward pass of their own, which make the states again:
                     what does not lie head after head is copied; n and m of each token in fp32
"""

import torch
import transformers.models.rwkv.modeling_rwkv as rwkv
import transformers.models.xlstm.modeling_xlstm as xlstm
import transformers.models.zamba.modeling_zamba as zamba


def gradients(*tensors):
    return tuple(torch.empty_like(tensor) for tensor in tensors)


class Wkv(torch.autograd.Function):
    @staticmethod
    def forward(ctx, decay, first, key, value):
        out = torch.empty_like(key)
        ctx.save_for_backward(-torch.exp(decay.float()), first, key, value, out)
        return out

    @staticmethod
    def backward(ctx, _):
        _, first, key, value, _ = ctx.saved_tensors
        return gradients(first, first, key, value)


class Convolution(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight, bias)
        return torch.empty_like(x)

    @staticmethod
    def backward(ctx, _):
        return gradients(*ctx.saved_tensors)


def along_sequence(tensor):
    return tensor if tensor.stride(-1) == 1 else tensor.contiguous()


class SelectiveScan(torch.autograd.Function):
    @staticmethod
    def forward(ctx, u, step, a, b, c, d, z, bias):
        u, step, b, c, z = (along_sequence(tensor) for tensor in (u, step, b, c, z))
        batch, channels, tokens = u.shape
        states = torch.empty(batch, channels, (tokens + 2047) // 2048, 2 * a.shape[-1],
                             dtype=torch.float32, device=u.device)
        ctx.save_for_backward(u, step, a, b, c, d, z, bias, states, torch.empty_like(u))
        return torch.empty_like(u)

    @staticmethod
    def backward(ctx, _):
        return gradients(*ctx.saved_tensors[:8])


class MatrixMemory(torch.autograd.Function):
    @staticmethod
    def forward(ctx, query, key, value, input_gate, forget_gate):
        kept = [tensor.contiguous() for tensor in (query, key, value, input_gate, forget_gate)]
        of_tokens = [torch.empty(query.shape[:3], dtype=torch.float32, device=query.device)
                     for _ in range(2)]
        ctx.save_for_backward(*kept, *of_tokens)
        return torch.empty(value.shape, dtype=value.dtype, device=value.device)

    @staticmethod
    def backward(ctx, _):
        return gradients(*ctx.saved_tensors[:5])


def remember(_self, query, key, value, igate, fgate, **_):
    return MatrixMemory.apply(query, key, value, igate, fgate), None


def put_in_place():
    xlstm.xLSTMBackend.forward = remember
    rwkv.rwkv_linear_attention = lambda decay, first, key, value, state=None, return_state=False: (
        Wkv.apply(decay, first, key, value), state)
    zamba.causal_conv1d_fn = lambda x, weight, bias, **_: Convolution.apply(x, weight, bias)
    zamba.mamba_selective_scan = lambda u, step, a, b, c, D, z, delta_bias, **_: SelectiveScan.apply(
        u, step, a, b, c, D, z, delta_bias)
