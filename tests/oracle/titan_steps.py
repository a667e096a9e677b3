"""Steps of torchtitan's own trainer parts beside the plans of the same experiments, by
torch_golden_test.

    titan_steps.py TORCH_GOLDEN_TEST [--only TEXT] [--keep FOLDER] [--draw COUNT] [--seed 1]

Compared are calls in order with axes and bytes, bytes held by category behind forward and backward,
and the peak.
"""

import sys

import golden_steps
import titan_cases

if __name__ == "__main__":
    sys.exit(golden_steps.compare(__doc__, "titan_worker.py", "torch/torchtitan",
                                  titan_cases.cases(), titan_cases.drawn))
