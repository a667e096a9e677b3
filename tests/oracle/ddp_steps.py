"""Steps of PyTorch's DistributedDataParallel beside the plans of the same experiments, by
torch_golden_test.

    ddp_steps.py TORCH_GOLDEN_TEST [--only TEXT] [--keep FOLDER] [--draw COUNT] [--seed 1]

Compared are the buckets from the second step on, bytes held by category behind forward and backward,
and the peak. Models have the real ones' dimensions and few layers; parameters are fp32.
"""

import random
import sys

import golden_steps
from fully_shard_cases import MODELS, gpt2

DEFAULTS = {"batch": 1, "seq": 1024, "param_dtype": "fp32", "bucket_cap_mb": None,
            "gradient_as_bucket_view": False, "ac": "none", "optimizer": "fused", "clip": False,
            "microbatches": 1}

SMALL = {"gpt2": gpt2(768, 12, 4), "gpt2-xl": gpt2(1600, 25, 3)}

CASES = [
    ("gpt2", 8, {"batch": 4}),
    ("gpt2", 4, {"seq": 64, "bucket_cap_mb": 5, "gradient_as_bucket_view": True}),
    ("gpt2-xl", 16, {"microbatches": 3, "clip": True}),
    ("gpt2", 2, {"microbatches": 2, "gradient_as_bucket_view": True, "ac": "full"}),
    ("qwen2.5-7b", 8, {"bucket_cap_mb": 100, "ac": "full"}),
    ("qwen3-8b", 6, {"microbatches": 2, "seq": 512}),
    ("llama-2-7b", 8, {"ac": "every-2", "optimizer": "sgd", "seq": 4096}),
]


def case_of(number, model, world, settings):
    words = [f"{key}-{value}" for key, value in settings.items()]
    return {"id": "_".join([f"{number:02d}-{model}-w{world}", *words]), "world_size": world,
            "model": {**MODELS, **SMALL}[model], "settings": DEFAULTS | settings}


def drawn(seed, number):
    choice = random.Random(f"{seed} {number}").choice
    settings = {"batch": choice([1, 2, 4]), "seq": choice([64, 256, 1024]),
                "bucket_cap_mb": choice([None, 1, 5, 25, 50, 200]),
                "gradient_as_bucket_view": choice([False, True]),
                "ac": choice(["none", "full", "every-2"]), "clip": choice([False, True]),
                "microbatches": choice([1, 1, 2, 3]), "optimizer": choice(["fused", "sgd"])}
    names = sorted({**MODELS, **SMALL}.keys() - {"mixtral-8x7b", "llama-3.1-70b", "qwen2.5-32b",
                                                 "qwen3-32b"})
    return case_of(number, choice(names), choice([2, 4, 6, 8, 64]), settings)


if __name__ == "__main__":
    sys.exit(golden_steps.compare(__doc__, "ddp_worker.py", "torch/ddp",
                                  (case_of(n, *case) for n, case in enumerate(CASES)), drawn))
