"""Ranks of pipelines that pipeline_steps.py compares: a model, its layers, degrees, a schedule and
what differs from DEFAULTS (the words are those of the records of tests/golden/torch/pipeline).

Left out is what is known to differ. Of split passes: under activation checkpointing PyTorch computes
a block again for each group of weights; where the last stage's logits are a view (tensor parallelism),
returned outputs keep the graphs of all microbatches (with whole passes what it has received)."""

from fully_shard_cases import MODELS

DEFAULTS = {
    "v": 1, "mb_size": 1, "seq": 2048, "param_dtype": "bf16", "reduce_dtype": "fp32",
    "reshard_after_forward": False, "ac": "none", "wrap": "blocks", "tp": 1, "sp": True,
    "optimizer": "fused", "steps": 2, "dp_shard": 1, "loss_parallel": False,
}

# Model, layers, ranks, schedule, microbatches, rank, settings.
CASES = [
    ("llama-3.1-8b", 8, 4, "1F1B", 8, 0, {"dp_shard": 4}),
    ("qwen2.5-7b", 8, 4, "1F1B", 6, 3, {"dp_shard": 2, "reshard_after_forward": True}),
    ("llama-2-13b", 4, 4, "1F1B", 7, 1, {"dp_shard": 2, "reshard_after_forward": True}),
    ("llama-2-7b", 6, 3, "1F1B", 5, 1, {"ac": "full"}),
    ("llama-3.1-8b", 4, 2, "1F1B", 4, 0, {"dp_shard": 2, "tp": 4}),
    ("llama-3.1-70b", 4, 2, "1F1B", 4, 1, {"dp_shard": 4, "tp": 8, "ac": "full"}),
    ("qwen3-8b", 4, 2, "GPipe", 6, 0, {"dp_shard": 2, "mb_size": 2}),
    ("llama-2-7b", 4, 4, "GPipe", 5, 3, {"dp_shard": 4, "ac": "full"}),
    ("qwen2.5-7b", 8, 4, "Interleaved1F1B", 8, 2, {"dp_shard": 2, "v": 2}),
    ("llama-3.1-8b", 12, 4, "Interleaved1F1B", 8, 3, {"v": 3}),
    ("llama-2-7b", 4, 2, "Interleaved1F1B", 6, 0, {"dp_shard": 2, "v": 2, "tp": 2, "ac": "full"}),
    ("llama-3.1-8b", 8, 4, "LoopedBFS", 8, 3, {"dp_shard": 2, "v": 2}),
    ("llama-2-13b", 4, 2, "LoopedBFS", 4, 0, {"dp_shard": 2, "v": 2, "tp": 4, "ac": "full"}),
    ("qwen3-8b", 4, 2, "InterleavedZeroBubble", 6, 1, {"dp_shard": 4, "v": 2}),
    ("llama-3.1-8b", 9, 3, "InterleavedZeroBubble", 9, 1, {"dp_shard": 2, "v": 3}),
    ("llama-2-7b", 8, 4, "ZBVZeroBubble", 8, 1, {"dp_shard": 2, "v": 2}),
    ("qwen2.5-7b", 4, 2, "ZBVZeroBubble", 6, 0, {"v": 2}),
    ("llama-2-7b", 4, 2, "DualPipeV", 8, 1, {"dp_shard": 2, "v": 2}),
    ("llama-3.1-8b", 8, 4, "DualPipeV", 8, 0, {"v": 2}),
]


def cases():
    """As the worker reads them."""
    for number, (model, layers, ranks, schedule, microbatches, rank, settings) in enumerate(CASES):
        given = DEFAULTS | settings | {"pp": ranks, "pp_rank": rank, "schedule": schedule,
                                       "microbatches": microbatches}
        words = [f"{key}{value}" for key, value in settings.items()]
        inner = given["dp_shard"] * given["tp"]
        yield {"id": "-".join([f"{number:02d}", model, f"pp{ranks}", schedule, f"rank{rank}", *words]),
               "model": MODELS[model] | {"num_hidden_layers": layers}, "world_size": ranks * inner,
               "rank": rank * inner, "settings": given}
