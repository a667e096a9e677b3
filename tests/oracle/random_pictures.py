"""Configurations of models of images, sounds, videos and diffusion drawn at random beside live
transformers and diffusers: names and shapes of parameters, FLOPs and saved activations.

    random_pictures.py SHARDSIM [--only TEXT] [--count 3] [--seed 1] [--changes 3]

Of each case of eager_cases.json a few keys get another value of their kind: flags turn, activations,
rates, heads, layers and widths change, entries of lists, those of a nested configuration, too. What the
classes cannot build or run says nothing, and is passed over; what shardsim refuses is counted apart. A
case that differs is made smaller, key by key, before it is printed. Saved activations may differ by as
much as the case itself does, where nothing is drawn.
"""

import contextlib
import io
import json
import os
import random
import sys
import warnings

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import torch

import eager_records
from models import predicted_shapes
from random_configurations import ACTIVATIONS, is_refusal, options, told

# Of inputs and losses, which a case says; of runs and files; or without a meaning of their own.
LEFT = {"image_size", "num_channels", "patch_size", "num_labels", "sample_size", "in_channels", "use_cache",
        "return_dict", "output_hidden_states", "output_attentions", "torchscript", "is_encoder_decoder",
        "is_decoder", "add_cross_attention", "chunk_size_feed_forward", "num_frames", "tubelet_size",
        "gradient_checkpointing", "auxiliary_loss", "id2label", "label2id", "problem_type", "backbone",
        "use_pretrained_backbone", "use_timm_backbone", "num_mel_bins", "max_length", "apply_spec_augment",
        "pad_token_id", "bos_token_id", "eos_token_id", "vocab_size", "num_hidden_layers"}


def other(key, value, draw):
    """Another value of a key, or None."""
    if key in LEFT or key.startswith("_") or "layerdrop" in key or "token" in key:
        return None
    if isinstance(value, bool):
        return not value
    if isinstance(value, str) and value in ACTIVATIONS:
        return draw.choice(ACTIVATIONS)
    if isinstance(value, float) and ("drop" in key or "ratio" in key):
        return draw.choice([0.0, 0.1]) if "drop" in key else draw.choice([2.0, 3.0, 4.0])
    if isinstance(value, int):
        return draw.choice([value * 2, max(value // 2, 1)] + ([value + 1] if value < 9 else []))
    numbers = isinstance(value, (list, tuple)) and value and all(type(one) is int for one in value)
    if numbers and not key.endswith("indices"):
        changed = list(value)
        place = draw.randrange(len(changed))
        changed[place] = draw.choice([changed[place] * 2, max(changed[place] // 2, 1), changed[place] + 1])
        return changed
    return None


def keys_of(case):
    """All keys of the case's class."""
    with torch.device("meta"), contextlib.redirect_stdout(io.StringIO()):
        config = eager_records.build(case)[1]
    return json.loads(config.to_json_string(use_diff=False))


def drawn(keys, draw, changes):
    able = [key for key, value in keys.items() if other(key, value, draw) is not None]
    picked = {key: other(key, keys[key], draw) for key in draw.sample(able, min(changes, len(able)))}
    return {key: value for key, value in picked.items() if value != keys[key]}


def with_keys(case, changed):
    return case | {"config": case["config"] | changed}


def comparison(case, shardsim, share):
    """(differences, how far saved is, None), or (None, 0, why the classes say nothing)."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            record = eager_records.record_of(case)
    except Exception as error:  # whatever they raise where they cannot
        return None, 0, f"{type(error).__name__}: {str(error)[:150]}"
    report = eager_records.ask(shardsim, record)
    if isinstance(report, str):
        return [f"refused: {report[:300]}"], 0, None
    with torch.device("meta"):
        model = eager_records.build(case)[0]
    expected = {name: list(p.shape) for name, p in model.named_parameters()}
    found = predicted_shapes(report["parameters"])
    messages = [f"{name}: expected {expected.get(name)}, found {found.get(name)}"
                for name in sorted(expected.keys() | found.keys())
                if expected.get(name) != found.get(name)]
    messages += [message for message in eager_records.differences(record, report) if "FLOPs" in message]
    saved = record["saved_activations"][0]["total_bytes"]
    gap = report["saved_activation_bytes"] / saved - 1
    if abs(gap) > share + 1e-6:
        messages.append(f"saved: {100 * gap:+.4f} %")
    return messages, abs(gap), None


def smaller(case, changed, shardsim, share):
    """Fewer keys that make it differ all the same."""
    for key in list(changed):
        rest = {name: value for name, value in changed.items() if name != key}
        messages, _, why = comparison(with_keys(case, rest), shardsim, share)
        if why is None and messages:
            changed = rest
    return changed


def run_case(case, arguments, counts):
    draw = random.Random(f"{arguments.seed} {case['name']}")
    eager_records.MASKS[0], eager_records.NUMBER[0] = case.get("masks", True), case.get("number", 1)
    messages, share, why = comparison(case, arguments.shardsim, 0.01)
    if why or messages:
        print(f"{case['name']}: passed over, {why or messages}", flush=True)
        return
    keys = keys_of(case)
    for _ in range(arguments.count):
        changed = drawn(keys, draw, arguments.changes)
        messages, _, why = comparison(with_keys(case, changed), arguments.shardsim, share)
        if why:
            print(f"{case['name']} {changed}: passed over, {why}", flush=True)
            continue
        counts["compared"] += 1
        if not messages:
            continue
        changed = smaller(case, changed, arguments.shardsim, share)
        messages, _, _ = comparison(with_keys(case, changed), arguments.shardsim, share)
        counts["refused" if is_refusal(messages) else "differ"] += 1
        print(f"{case['name']}: {changed} of {json.dumps(case['config'])}")
        for message in messages[:4]:
            print(f"    {message}", flush=True)


def main():
    arguments = options(__doc__, "cases", changes=3).parse_args()
    warnings.simplefilter("ignore")
    with open(os.path.join(os.path.dirname(__file__), "eager_cases.json"), encoding="utf-8") as file:
        cases = json.load(file)
    # model_costs, which is imported beside, has calls of its own in these places.
    eager_records.switch_off_what_reads_data()
    counts = {"compared": 0, "refused": 0, "differ": 0}
    for case in cases:
        if arguments.only in case["name"]:
            run_case(case, arguments, counts)
    return told(counts)


if __name__ == "__main__":
    sys.exit(main())
