"""Steps of torchtitan that titan_steps.py compares: family, flavor, layers, degrees, rank and what
differs from DEFAULTS (the words are those of the records of tests/golden/torch/torchtitan).

Left out is what is known to differ: q, k and v are one parameter there, whose rows are padded as
one where shards do not divide them; tied tables are sharded apart and gathered twice under tensor
parallelism and other backends than partial_dtensor; biases behind GPT-OSS's attention are summed by
other rules under tensor parallelism; of latent attention over spmd_types under selective
checkpoints one scatter is repeated elsewhere; tiny models keep 1 to 2 % of activations more."""

import math
import random

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


def case_of(number, family, flavor, layers, degrees, rank, settings):
    """As the worker reads it."""
    given = DEFAULTS | degrees | settings
    given |= {"family": family, "flavor": flavor, "layers": layers}
    words = [f"{key}{value}" for key, value in (degrees | settings).items()]
    ranks = given["dp_replicate"] * given["dp_shard"] * given["cp"] * given["tp"]
    return {"id": "-".join([f"titan-{number:02d}", family, flavor, *words]),
            "model": {"model_type": family}, "world_size": ranks, "rank": rank,
            "settings": given}


def cases():
    for number, case in enumerate(CASES):
        yield case_of(number, *case)


FLAVORS = [("llama3", "1B"), ("llama3", "8B"), ("llama3", "70B"), ("qwen3", "1.7B"),
           ("qwen3", "4B"), ("qwen3", "8B"), ("qwen3", "14B"), ("qwen3", "32B"),
           ("qwen3", "30B-A3B"), ("qwen3", "235B-A22B"), ("deepseek_v3", "16B"),
           ("deepseek_v3", "671B"), ("gpt_oss", "20b"), ("gpt_oss", "120b")]
TIED = {("llama3", "1B"), ("qwen3", "1.7B"), ("qwen3", "4B")}


def drawn(seed, number):
    """A case at random, but for what is known to differ."""
    choose = random.Random(f"{seed} {number}")
    choice = choose.choice
    family, flavor = choice(FLAVORS)
    is_tied = (family, flavor) in TIED
    has_experts = family in ("deepseek_v3", "gpt_oss") or "-A" in flavor
    degrees = {"dp_shard": choice([2, 4, 8])}
    if choice([True, False, False]):
        degrees["dp_replicate"] = 2
    if choice([True, False]) and not is_tied and family != "gpt_oss":
        degrees["tp"] = choice([2, 4])
    if choice([True, False, False]) and family in ("llama3", "qwen3"):
        degrees["cp"] = choice([2, 4])
    if has_experts and choice([True, True, False]):
        degrees["ep"] = choice([2, degrees["dp_shard"] * degrees.get("cp", 1)])
    settings = {"seq": choice([2048, 4096]), "batch": choice([1, 2]),
                "ac": choice(["none", "full", "selective"]), "loss": choice(["plain", "chunked"]),
                "microbatches": choice([1, 1, 2]), "reshard": choice(["default", "always", "never"])}
    if not is_tied:
        settings["backend"] = choice(["partial_dtensor", "full_dtensor", "spmd_types"])
    if family == "deepseek_v3" and "tp" in degrees and settings.get("backend") == "spmd_types":
        settings["ac"] = "full"
    layers = choice([3, 4]) + (family == "deepseek_v3")
    return case_of(number, family, flavor, layers, degrees,
                   choose.randrange(math.prod(degrees[axis] for axis in degrees if axis != "ep")),
                   settings)
