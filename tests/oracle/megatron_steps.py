"""Steps of Megatron-Core beside the plans of the same experiments, by megatron_golden_test.

    megatron_steps.py MEGATRON_GOLDEN_TEST [--only TEXT] [--keep FOLDER]
                      [--draw COUNT [--first 0] [--seed 1]]

Compared are calls in order with groups and bytes, buckets, bytes held, and the peak.
"""

import sys

import golden_steps
import megatron_cases
import megatron_draws

if __name__ == "__main__":
    sys.exit(golden_steps.compare(__doc__, "megatron_worker.py", "megatron",
                                  megatron_cases.cases(), megatron_draws.draw))
