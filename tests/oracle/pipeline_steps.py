"""Ranks of torch.distributed.pipelining's steps beside the plans of the same experiments, by
torch_golden_test.

    pipeline_steps.py TORCH_GOLDEN_TEST [--only TEXT] [--keep FOLDER]

Compared are calls in order with groups and bytes, bytes of parameters and moments, and the peak.
"""

import sys

import golden_steps
import pipeline_cases

if __name__ == "__main__":
    sys.exit(golden_steps.compare(__doc__, "pipeline_worker.py", "torch/pipeline",
                                  pipeline_cases.cases()))
