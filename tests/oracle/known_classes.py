"""Which classes of transformers' tasks shardsim knows: of each mapping of auto classes how many
families have one that `shardsim model list` names, and those that have none.

    known_classes.py SHARDSIM [TASK ...]      CAUSAL_LM, IMAGE_TEXT_TO_TEXT, ...; all of `TASKS` if none
"""

import os
import subprocess
import sys

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

from transformers.models.auto import modeling_auto

BASES = "BASES"  # classes without a head

TASKS = ["CAUSAL_LM", "MASKED_LM", "SEQ_TO_SEQ_CAUSAL_LM", "IMAGE_TEXT_TO_TEXT", "IMAGE_CLASSIFICATION",
         "AUDIO_CLASSIFICATION", "SPEECH_SEQ_2_SEQ", "CTC", "TEXT_TO_WAVEFORM",
         "SEQUENCE_CLASSIFICATION", "TOKEN_CLASSIFICATION", "QUESTION_ANSWERING", "MULTIPLE_CHOICE",
         "PRETRAINING", "OBJECT_DETECTION", BASES]


def known_architectures(shardsim):
    lines = subprocess.run([shardsim, "model", "list"], capture_output=True, text=True, check=True)
    return {word for line in lines.stdout.splitlines() for word in line.split()[1:2]}


def classes_of(entry):
    return entry if isinstance(entry, (tuple, list)) else (entry,)


def main():
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    known = known_architectures(sys.argv[1])
    for task in sys.argv[2:] or TASKS:
        mapping = (modeling_auto.MODEL_MAPPING_NAMES if task == BASES else
                   getattr(modeling_auto, f"MODEL_FOR_{task}_MAPPING_NAMES"))
        missing = [f"{family} ({', '.join(classes_of(entry))})" for family, entry in mapping.items()
                   if not known.intersection(classes_of(entry))]
        print(f"{task}: {len(mapping) - len(missing)} of {len(mapping)}")
        for line in missing:
            print(f"  {line}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
