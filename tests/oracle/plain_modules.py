"""Plain modules with the parameter names of Hugging Face's, as the records of tests/golden/torch/fsdp
have them: Llama's and Qwen's kind, Mixtral's and GPT-2.

Kernels are those of a GPU by their names, since tensors here are without a device: flash attention
keeps q, k, v, its output and a number for each row and head, the fused RMS norm its input and rstd.
"""

import torch
import torch.distributed._functional_collectives as collectives
from torch import nn
from torch.nn import functional

from call_recorder import as_one_kernel


class FusedNorm(torch.autograd.Function):
    """The CUDA kernel of RMS norm: it keeps its input and a number for each row."""

    @staticmethod
    def forward(ctx, x, weight):
        def kernel():
            rstd = torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-5)
            return (x * rstd).to(x.dtype) * weight, rstd
        out, rstd = as_one_kernel(kernel)()
        ctx.save_for_backward(x, weight, rstd)
        return out

    @staticmethod
    def backward(ctx, grad):
        def kernel():
            x, weight, rstd = ctx.saved_tensors
            scaled = grad * weight
            rows = (x * rstd).to(x.dtype)
            dx = (scaled - rows * (scaled * rows).mean(-1, keepdim=True)) * rstd
            return dx.to(x.dtype), (grad * rows).sum(tuple(range(grad.dim() - 1)))
        return as_one_kernel(kernel)()


class Norm(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x):
        return FusedNorm.apply(x, self.weight)


class Inner(nn.Module):
    """Attention itself, which context parallelism takes hold of."""

    def forward(self, q, k, v):
        return torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, 0.0, True)[0]


def rotated(x, cos, sin):
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


class Attention(nn.Module):
    def __init__(self, m):
        super().__init__()
        hidden, self.head = m["hidden_size"], m["head_dim"]
        heads, groups = m["num_attention_heads"], m["num_key_value_heads"]
        bias = m["attention_bias"]
        self.q_proj = nn.Linear(hidden, heads * self.head, bias=bias)
        self.k_proj = nn.Linear(hidden, groups * self.head, bias=bias)
        self.v_proj = nn.Linear(hidden, groups * self.head, bias=bias)
        self.o_proj = nn.Linear(heads * self.head, hidden, bias=False)
        if m["qk_norm"]:
            self.q_norm, self.k_norm = Norm(self.head), Norm(self.head)
        self.inner = Inner()

    def forward(self, x, cos, sin):
        batch, sequence, _ = x.shape

        def heads(y, norm):
            y = y.view(batch, sequence, -1, self.head)
            return (getattr(self, norm)(y) if hasattr(self, norm) else y).transpose(1, 2)
        q = rotated(heads(self.q_proj(x), "q_norm"), cos, sin)
        k = rotated(heads(self.k_proj(x), "k_norm"), cos, sin)
        v = self.v_proj(x).view(batch, sequence, -1, self.head).transpose(1, 2)
        out = self.inner(q, k, v).transpose(1, 2).reshape(batch, sequence, -1)
        return self.o_proj(out)


class Mlp(nn.Module):
    def __init__(self, m):
        super().__init__()
        hidden, inner = m["hidden_size"], m["intermediate_size"]
        self.gate_proj = nn.Linear(hidden, inner, bias=False)
        self.up_proj = nn.Linear(hidden, inner, bias=False)
        self.down_proj = nn.Linear(inner, hidden, bias=False)

    def forward(self, x):
        return self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))


class Experts(nn.Module):
    """Those of one device, stacked."""

    def __init__(self, count, hidden, inner):
        super().__init__()
        self.gate_proj = nn.Parameter(torch.empty(count, inner, hidden))
        self.up_proj = nn.Parameter(torch.empty(count, inner, hidden))
        self.down_proj = nn.Parameter(torch.empty(count, hidden, inner))

    def forward(self, x):
        x = x.view(self.gate_proj.shape[0], -1, x.shape[-1])
        h = functional.silu(torch.bmm(x, self.gate_proj.transpose(1, 2)))
        h = h * torch.bmm(x, self.up_proj.transpose(1, 2))
        return torch.bmm(h, self.down_proj.transpose(1, 2)).flatten(0, 1)


class Mixture(nn.Module):
    """Top-k routing by plain code; every expert gets the same number of tokens."""

    def __init__(self, m, group):
        super().__init__()
        self.chosen, self.group = m["num_experts_per_tok"], group
        self.count = m["num_local_experts"]
        self.gate = nn.Linear(m["hidden_size"], self.count, bias=False)
        ways = group.size() if group else 1
        self.experts = Experts(self.count // ways, m["hidden_size"], m["intermediate_size"])

    def forward(self, x):
        shape = x.shape
        x = x.view(-1, shape[-1])
        weights = functional.softmax(self.gate(x), dim=-1, dtype=torch.float)
        weights, chosen = torch.topk(weights, self.chosen, dim=-1)
        weights = (weights / weights.sum(-1, keepdim=True)).to(x.dtype)
        order = chosen.flatten().argsort()
        tokens = order // self.chosen
        rows = x[tokens]
        if self.group:
            counts = torch.zeros(self.count, dtype=torch.int64)
            parts = [rows.shape[0] // self.group.size()] * self.group.size()
            collectives.wait_tensor(collectives.all_to_all_single(
                counts, [self.count // self.group.size()] * self.group.size(),
                [self.count // self.group.size()] * self.group.size(), self.group))
            rows = collectives.all_to_all_single_autograd(rows, parts, parts, self.group)
            ways, local = self.group.size(), self.count // self.group.size()
            rows = rows.view(ways, local, -1, shape[-1]).transpose(0, 1).reshape(-1, shape[-1])
            rows = self.experts(rows)
            rows = rows.view(local, ways, -1, shape[-1]).transpose(0, 1).reshape(-1, shape[-1])
            rows = collectives.all_to_all_single_autograd(rows, parts, parts, self.group)
        else:
            rows = self.experts(rows)
        rows = rows * weights.flatten()[order].unsqueeze(-1)
        return torch.zeros_like(x).index_add(0, tokens, rows).view(shape)


class Block(nn.Module):
    def __init__(self, m, group):
        super().__init__()
        self.self_attn = Attention(m)  # registered as in Hugging Face's, which sums over tp follow
        self.mlp = Mixture(m, group) if m["num_local_experts"] else Mlp(m)
        self.input_layernorm = Norm(m["hidden_size"])
        self.post_attention_layernorm = Norm(m["hidden_size"])

    def forward(self, x, cos, sin):
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        return x + self.mlp(self.post_attention_layernorm(x))


class Decoder(nn.Module):
    def __init__(self, m, layers, first, last, group):
        super().__init__()
        if first:
            self.embed_tokens = nn.Embedding(m["vocab_size"], m["hidden_size"])
        self.layers = nn.ModuleDict({str(i): Block(m, group) for i in layers})
        if last:
            self.norm = Norm(m["hidden_size"])


class Llama(nn.Module):
    """The layers of one stage, with embedding and head where it is the first or the last."""

    def __init__(self, m, layers=None, first=True, last=True, group=None, sequence=None):
        super().__init__()
        layers = range(m["num_hidden_layers"]) if layers is None else layers
        self.model = Decoder(m, layers, first, last, group)
        if last:
            self.lm_head = nn.Linear(m["hidden_size"], m["vocab_size"], bias=False)
            if m["tie_word_embeddings"] and first:
                self.lm_head.weight = self.model.embed_tokens.weight
        self.cos = torch.zeros(sequence, m["head_dim"], dtype=torch.bfloat16)
        self.sin = torch.zeros(sequence, m["head_dim"], dtype=torch.bfloat16)

    def blocks(self):
        return list(self.model.layers.values())

    def ends(self):
        """Embedding, norm, head."""
        return self.model.embed_tokens, self.model.norm, self.lm_head

    def forward(self, x):
        if hasattr(self.model, "embed_tokens"):
            x = self.model.embed_tokens(x)
        for block in self.model.layers.values():
            x = block(x, self.cos, self.sin)
        return self.lm_head(self.model.norm(x)) if hasattr(self, "lm_head") else x


class GptAttention(nn.Module):
    def __init__(self, m):
        super().__init__()
        self.heads = m["n_head"]
        self.c_attn = nn.Linear(m["n_embd"], 3 * m["n_embd"])
        self.c_proj = nn.Linear(m["n_embd"], m["n_embd"])

    def forward(self, x):
        batch, sequence, width = x.shape
        q, k, v = (y.view(batch, sequence, self.heads, -1).transpose(1, 2)
                   for y in self.c_attn(x).split(width, dim=2))
        out = torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, 0.0, True)[0]
        return self.c_proj(out.transpose(1, 2).reshape(batch, sequence, width))


class GptMlp(nn.Module):
    def __init__(self, m):
        super().__init__()
        self.c_fc = nn.Linear(m["n_embd"], 4 * m["n_embd"])
        self.c_proj = nn.Linear(4 * m["n_embd"], m["n_embd"])

    def forward(self, x):
        return self.c_proj(functional.gelu(self.c_fc(x), approximate="tanh"))


class GptBlock(nn.Module):
    def __init__(self, m):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(m["n_embd"]), nn.LayerNorm(m["n_embd"])
        self.attn, self.mlp = GptAttention(m), GptMlp(m)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt2(nn.Module):
    def __init__(self, m):
        super().__init__()
        self.transformer = nn.ModuleDict({
            "wte": nn.Embedding(m["vocab_size"], m["n_embd"]),
            "wpe": nn.Embedding(m["n_positions"], m["n_embd"]),
            "h": nn.ModuleList([GptBlock(m) for _ in range(m["n_layer"])]),
            "ln_f": nn.LayerNorm(m["n_embd"])})
        self.lm_head = nn.Linear(m["n_embd"], m["vocab_size"], bias=False)
        self.lm_head.weight = self.transformer["wte"].weight

    def blocks(self):
        return list(self.transformer["h"])

    def ends(self):
        return self.transformer["wte"], self.transformer["ln_f"], self.lm_head

    def forward(self, x):
        parts = self.transformer
        x = parts["wte"](x) + parts["wpe"](torch.arange(x.shape[1]))
        for block in parts["h"]:
            x = block(x)
        return self.lm_head(parts["ln_f"](x))
