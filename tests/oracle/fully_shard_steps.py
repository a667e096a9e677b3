"""Steps of PyTorch's fully_shard, DTensor and context parallelism beside the plans of the same
experiments, by torch_golden_test.

    fully_shard_steps.py TORCH_GOLDEN_TEST [--only TEXT] [--keep FOLDER] [--draw COUNT] [--seed 1]

Compared are calls in order with axes and bytes, bytes held by category behind forward and backward,
and the peak.
"""

import sys

import fully_shard_cases
import golden_steps

if __name__ == "__main__":
    sys.exit(golden_steps.compare(__doc__, "fully_shard_worker.py", "torch/fsdp",
                                  fully_shard_cases.cases(), fully_shard_cases.drawn))
