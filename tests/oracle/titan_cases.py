"""Steps of torchtitan that titan_steps.py compares: family, flavor, layers, degrees, rank and what
differs from DEFAULTS (the words are those of the records of tests/golden/torch/torchtitan).

Left out is what is known to differ: q, k and v are one parameter there, whose rows are padded as
one where shards do not divide them; tied tables are sharded apart and gathered twice under tensor
parallelism and other backends than partial_dtensor; biases behind GPT-OSS's attention are summed by
other rules under tensor parallelism; of latent attention over spmd_types under selective
checkpoints one scatter is repeated elsewhere; tiny models keep 1 to 2 % of activations more."""

DEFAULTS = {
    "seq": 2048, "batch": 1, "tp": 1, "cp": 1, "ep": 1, "dp_replicate": 1, "dp_shard": 1,
    "backend": "partial_dtensor", "ac": "none", "loss": "plain", "reshard": "default", "steps": 2,
    "microbatches": 1, "param_dtype": "bf16", "reduce_dtype": "fp32", "optimizer": "fused",
    "wrap": "torchtitan apply_fsdp_to_decoder", "clip": True, "pads_values": False,
}

CASES = [
    ("llama3", "8B", 4, {"dp_replicate": 4, "dp_shard": 2, "tp": 2}, 15, {"seq": 4096}),
    ("qwen3", "30B-A3B", 2, {"dp_replicate": 2}, 1,
     {"ac": "selective", "loss": "chunked", "reshard": "always"}),
    ("llama3", "debugmodel", 2, {"dp_replicate": 2, "dp_shard": 4}, 3,
     {"seq": 1024, "batch": 2, "backend": "spmd_types", "ac": "selective"}),
    ("qwen3", "30B-A3B", 2, {"dp_replicate": 4, "dp_shard": 2, "ep": 2}, 0,
     {"batch": 2, "ac": "full"}),
    ("qwen3", "0.6B", 2, {"dp_replicate": 4, "dp_shard": 4}, 0,
     {"seq": 4096, "ac": "selective", "microbatches": 2}),
    ("qwen3", "1.7B", 3, {"dp_shard": 8}, 0, {"loss": "chunked"}),
    ("llama3", "70B", 3, {"cp": 4, "tp": 4}, 0, {"seq": 4096, "ac": "full"}),
    ("qwen3", "14B", 4, {"dp_shard": 8, "tp": 2}, 0,
     {"seq": 4096, "batch": 2, "backend": "spmd_types", "ac": "full"}),
    ("qwen3", "14B", 3, {"dp_replicate": 4, "dp_shard": 4}, 10,
     {"batch": 2, "ac": "selective", "loss": "chunked"}),
    ("gpt_oss", "20b", 4, {"tp": 2, "ep": 2}, 1,
     {"seq": 1024, "backend": "spmd_types", "ac": "selective", "microbatches": 3}),
    ("llama3", "70B", 3, {"dp_replicate": 4, "dp_shard": 8}, 31,
     {"backend": "spmd_types", "ac": "selective", "reshard": "never"}),
    ("qwen3", "32B", 3, {"dp_replicate": 4, "dp_shard": 2, "cp": 4}, 0,
     {"seq": 4096, "ac": "selective", "loss": "chunked", "reshard": "always"}),
    ("qwen3", "235B-A22B", 4, {"dp_shard": 2}, 0,
     {"seq": 4096, "backend": "spmd_types", "ac": "full", "reshard": "never", "microbatches": 2}),
]


def cases():
    """As the worker reads them."""
    for number, (family, flavor, layers, degrees, rank, settings) in enumerate(CASES):
        given = DEFAULTS | degrees | settings
        given |= {"family": family, "flavor": flavor, "layers": layers}
        words = [f"{key}{value}" for key, value in (degrees | settings).items()]
        ranks = given["dp_replicate"] * given["dp_shard"] * given["cp"] * given["tp"]
        yield {"id": "-".join([f"titan-{number:02d}", family, flavor, *words]),
               "model": {"model_type": family}, "world_size": ranks, "rank": rank,
               "settings": given}
