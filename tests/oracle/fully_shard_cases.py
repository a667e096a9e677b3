"""Steps that fully_shard_steps.py compares: a model, degrees and settings.

Models have the real ones' dimensions and few layers. A case: model, axes, rank, what differs from
DEFAULTS (the words are those of the records of tests/golden/torch/fsdp).

Left out is what is known to differ: with units of the whole model DTensor adds up a norm's gradients
layer by layer, and the plan all at once; with units of the ends set_is_last_backward(False) has the
last unit gathered in vain; a mesh of replicas and context without dp_shard is sharded over both;
ranks of a ring that see whole chunks alone keep one copy less of what attention makes than others."""

import math
import random

DEFAULTS = {
    "batch": 1, "seq": 2048, "param_dtype": "bf16", "reduce_dtype": "fp32",
    "reshard_after_forward": True, "wrap": "blocks", "ac": "none", "optimizer": "fused", "clip": True,
    "tp": 1, "sp": True, "loss_parallel": True, "dp_replicate": 1, "cp": 1, "steps": 2,
    "microbatches": 1, "dp_shard": 1,
}


def decoder(kind, hidden, inner, heads, groups, vocabulary, **more):
    return {"name": kind, "hidden_size": hidden, "num_hidden_layers": 4, "num_attention_heads": heads,
            "num_key_value_heads": groups, "intermediate_size": inner, "vocab_size": vocabulary,
            "head_dim": 128, "tie_word_embeddings": False, "qk_norm": kind == "qwen3",
            "attention_bias": kind == "qwen2", "num_local_experts": 0, "num_experts_per_tok": 0,
            "model_type": kind, **more}


def gpt2(width, heads, layers):
    return {"name": "gpt2", "n_embd": width, "n_layer": layers, "n_head": heads, "vocab_size": 50257,
            "n_positions": 1024, "tie_word_embeddings": True, "model_type": "gpt2"}


MODELS = {
    "llama-3.1-8b": decoder("llama", 4096, 14336, 32, 8, 128256),
    "llama-3.1-70b": decoder("llama", 8192, 28672, 64, 8, 128256),
    "llama-2-7b": decoder("llama", 4096, 11008, 32, 32, 32000),
    "llama-2-13b": decoder("llama", 5120, 13824, 40, 40, 32000),
    "qwen2.5-7b": decoder("qwen2", 3584, 18944, 28, 4, 152064),
    "qwen2.5-32b": decoder("qwen2", 5120, 27648, 40, 8, 152064),
    "qwen3-8b": decoder("qwen3", 4096, 12288, 32, 8, 151936),
    "qwen3-32b": decoder("qwen3", 5120, 25600, 64, 8, 151936),
    "mixtral-8x7b": decoder("mixtral", 4096, 14336, 32, 8, 32000, num_local_experts=8,
                            num_experts_per_tok=2),
    "gpt2-medium": gpt2(1024, 16, 3),
}

EXPLICIT = "explicit, 2 blocks each way"

CASES = [
    ("llama-3.1-8b", {"dp_shard": 16}, 0, {}),
    ("llama-2-7b", {"dp_shard": 24}, 23, {"batch": 2}),
    ("llama-2-13b", {"dp_shard": 12}, 5, {"ac": "full", "wrap": "titan"}),
    ("llama-3.1-70b", {"dp_shard": 64}, 0, {"ac": "full"}),
    ("qwen2.5-7b", {"dp_shard": 8}, 0, {}),
    ("qwen2.5-7b", {"dp_shard": 14}, 13, {"ac": "every-2", "batch": 2}),
    ("qwen2.5-32b", {"dp_shard": 32}, 0, {"wrap": "embed-head", "ac": "full"}),
    ("qwen3-8b", {"dp_shard": 8}, 0, {"reduce_dtype": "bf16"}),
    ("qwen3-32b", {"dp_shard": 16}, 0, {"prefetch": EXPLICIT, "ac": "full"}),
    ("qwen3-8b", {"dp_shard": 4}, 0, {"reshard_after_forward": False}),
    ("gpt2-medium", {"dp_shard": 6}, 0, {"seq": 1024, "batch": 2}),
    ("llama-3.1-8b", {"dp_shard": 8}, 0, {"microbatches": 3}),
    ("qwen2.5-7b", {"dp_shard": 8}, 0, {"microbatches": 2, "no_sync": True}),
    ("llama-3.1-8b", {"dp_shard": 8}, 0, {"microbatches": 2, "wrap": "blocks", "ac": "full",
                                          "reduce_dtype": "bf16"}),
    ("llama-3.1-8b", {"dp_replicate": 4, "dp_shard": 4}, 0, {}),
    ("qwen2.5-7b", {"dp_replicate": 2, "dp_shard": 8}, 0, {"microbatches": 2, "ac": "full"}),
    ("llama-2-7b", {"dp_replicate": 2, "dp_shard": 8}, 0, {"reduce_dtype": "bf16", "wrap": "titan"}),
    ("llama-2-7b", {"dp_replicate": 3, "dp_shard": 4}, 0, {"microbatches": 2, "no_sync": True,
                                                           "seq": 8192}),
    ("llama-3.1-8b", {"dp_shard": 4, "tp": 4}, 0, {}),
    ("llama-3.1-8b", {"dp_shard": 4, "tp": 8}, 0, {"ac": "full", "loss_parallel": False}),
    ("llama-2-7b", {"dp_shard": 8, "tp": 2}, 0, {"sp": False}),
    ("llama-2-7b", {"dp_shard": 2, "tp": 4}, 0, {"sp": False, "loss_parallel": False, "ac": "full"}),
    ("llama-3.1-70b", {"dp_shard": 8, "tp": 8}, 0, {"ac": "full", "wrap": "titan"}),
    ("qwen2.5-7b", {"dp_shard": 4, "tp": 4}, 0, {"ac": "every-2"}),
    ("qwen2.5-32b", {"dp_replicate": 2, "dp_shard": 4, "tp": 8}, 0, {"ac": "full"}),
    ("llama-2-13b", {"dp_shard": 3, "tp": 8}, 0, {"reduce_dtype": "bf16"}),
    ("llama-3.1-8b", {"dp_shard": 2, "tp": 4}, 0, {"wrap": "titan", "batch": 2}),
    ("llama-3.1-8b", {"dp_shard": 4, "cp": 2}, 0, {"seq": 8192}),
    ("qwen3-8b", {"dp_shard": 2, "cp": 4}, 0, {"seq": 8192, "ac": "full"}),
    ("qwen2.5-7b", {"dp_shard": 2, "cp": 3}, 0, {"seq": 6144, "cp_load_balance": False}),
    ("llama-3.1-8b", {"dp_shard": 2, "cp": 2, "tp": 4}, 0, {"seq": 8192, "ac": "full"}),
    ("llama-3.1-8b", {"dp_replicate": 2, "dp_shard": 2, "cp": 2}, 0, {"seq": 8192}),
    ("mixtral-8x7b", {"dp_shard": 16}, 0, {"ac": "full"}),
    ("mixtral-8x7b", {"dp_shard": 8}, 0, {"ep": 4}),
    ("mixtral-8x7b", {"dp_shard": 16}, 0, {"ep": 8, "ac": "full"}),
    ("mixtral-8x7b", {"dp_shard": 8}, 0, {"ep": 8, "ac": "every-2", "microbatches": 2}),
]


def case_of(number, model, axes, rank, settings):
    """As the worker reads it."""
    words = [f"{axis}{size}" for axis, size in axes.items()]
    words += [f"{key}-{value}" for key, value in settings.items()]
    name = "_".join(words).replace(" ", "").replace(",", "")
    return {"id": f"{number:02d}-{model}-{name}", "model": MODELS[model],
            "world_size": math.prod(axes.values()), "rank": rank,
            "settings": DEFAULTS | axes | settings}


def cases():
    for number, case in enumerate(CASES):
        yield case_of(number, *case)


def drawn_axes(choice, model):
    axes = {"dp_shard": choice([2, 3, 4, 6, 8, 12, 16, 24])}
    if choice([True, False, False]):
        axes = {"dp_replicate": choice([2, 3])} | axes
    if model.startswith(("gpt2", "mixtral")):
        return axes
    if choice([True, False, False]):
        axes["cp"] = choice([2, 3, 4])
    if choice([True, False]):
        axes["tp"] = choice([2, 4] if model == "qwen2.5-7b" else [2, 4, 8])
    return axes


def drawn(seed, number):
    """A case at random, but for what is known to differ."""
    choose = random.Random(f"{seed} {number}")
    choice = choose.choice
    model = choice(sorted(MODELS))
    axes = drawn_axes(choice, model)
    settings = {"batch": choice([1, 1, 2, 3]), "ac": choice(["none", "full", "every-2"]),
                "wrap": choice(["blocks", "blocks", "titan", "embed-head"]),
                "reduce_dtype": choice(["fp32", "fp32", "bf16"]), "clip": choice([True, False]),
                "optimizer": choice(["fused", "foreach", "sgd"]),
                "reshard_after_forward": choice([True, True, False])}
    settings["seq"] = 512 if model == "gpt2-medium" else choice([1, 2, 4]) * 1024
    if "cp" in axes:
        settings["seq"] = axes["cp"] * choice([1024, 2048])
        settings["cp_load_balance"] = choice([True, False])
    if "tp" in axes:
        settings |= {"sp": choice([True, False]), "loss_parallel": choice([True, False])}
    elif settings["wrap"] != "titan" and choice([True, False, False, False]):
        settings["prefetch"] = EXPLICIT
    if settings["wrap"] == "blocks" and choice([True, False]):
        settings |= {"microbatches": choice([2, 3]), "no_sync": choice([True, False])}
    elif model == "gpt2-medium":
        settings["wrap"] = "blocks"
    return case_of(number, model, axes, choose.randrange(math.prod(axes.values())), settings)
