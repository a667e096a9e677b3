"""Configurations drawn at random beside live transformers: names and shapes of parameters, ties, FLOPs
and saved activations of small models whose keys have unusual values.

    random_configurations.py SHARDSIM [--only TEXT] [--task CAUSAL_LM] [--count 3] [--seed 1]

Of each family of the task that `shardsim model list` names, the class's defaults are made small, or a
case of model_costs.json is where one starts from; then a few keys get another value of their kind: flags
turn, activations, heads and layers change, windows, rates and lists of layers are drawn. Half of the files
have all keys of the class, the others those that were drawn alone, so that both programs' defaults are
compared. What transformers cannot build or run says nothing, and is passed over; what shardsim refuses
is counted apart. A case that differs is made smaller, key by key, before it is printed.
"""

import argparse
import contextlib
import io
import json
import os
import random
import sys
import warnings

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import torch
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

import model_costs
from known_classes import classes_of, known_architectures
from models import ask_with, predicted_shapes, shapes_of

BATCH, SEQUENCE = 2, 64
ACTIVATIONS = ["gelu", "relu", "silu", "gelu_new", "gelu_pytorch_tanh", "relu2", "gelu_fast", "quick_gelu"]
WIDTHS, LAYERS, HEADS = [128, 192], [2, 3], [4, 8]
SIZES = {  # of small models
    "hidden_size": WIDTHS, "n_embd": WIDTHS, "d_model": WIDTHS, "dim": WIDTHS, "emb_dim": WIDTHS,
    "embedding_size": [128], "hidden_dim": [256], "dff": [256], "intermediate_size": [256, 200],
    "n_inner": [256], "ffn_dim": [256], "ffn_hidden_size": [256], "d_ff": [256, 200], "d_inner": [256],
    "encoder_ffn_dim": [256], "decoder_ffn_dim": [200, 256], "moe_intermediate_size": [64, 96],
    "shared_expert_intermediate_size": [64, 96], "shared_intermediate_size": [64],
    "moe_shared_expert_intermediate_size": [64], "num_hidden_layers": [2, 3, 5], "n_layer": LAYERS,
    "n_layers": LAYERS, "num_layers": LAYERS, "encoder_layers": LAYERS, "decoder_layers": LAYERS,
    "num_decoder_layers": LAYERS, "num_attention_heads": HEADS, "n_head": HEADS, "n_heads": HEADS,
    "num_heads": HEADS, "encoder_attention_heads": HEADS, "decoder_attention_heads": HEADS,
    "num_key_value_heads": [2, 4, 1], "head_dim": [16, 32, 24], "rotary_dim": [8, 16],
    "vocab_size": [1000, 1003], "max_position_embeddings": [512], "n_positions": [512],
    "num_experts": [8, 6], "num_local_experts": [8, 6], "n_routed_experts": [8, 16],
    "num_experts_per_tok": [2, 3], "num_experts_per_token": [2], "n_group": [2], "topk_group": [1, 2],
    "n_shared_experts": [1, 2], "num_shared_experts": [1, 2], "first_k_dense_replace": [0, 1, 2],
    "q_lora_rank": [48, 64], "kv_lora_rank": [32, 48], "qk_nope_head_dim": [16, 24],
    "qk_rope_head_dim": [8, 16], "v_head_dim": [16, 24, 32],
}
MADE_SMALL_FROM_NONE = ("num_experts_per_tok", "vocab_size")
LEFT = {  # of runs and files, or without a meaning of their own
    "use_cache", "return_dict", "output_hidden_states", "output_attentions", "torchscript",
    "is_encoder_decoder", "is_decoder", "add_cross_attention", "chunk_size_feed_forward",
    "use_mamba_kernels", "tie_encoder_decoder", "output_router_logits", "use_bfloat16", "dtype",
    "gradient_checkpointing", "return_dict_in_generate", "use_kernel_forward_from_hub",
    "cross_attention_hidden_size", "return_last_states",
}
# Token by token without their packages: parameters alone are compared.
SCANS = {"bamba", "falcon_h1", "falcon_mamba", "mamba", "mamba2", "jamba", "granitemoehybrid", "nemotron_h",
         "zamba2", "recurrent_gemma", "qwen3_next", "qwen3_5", "qwen3_5_moe", "qwen3_5_text",
         "qwen3_5_moe_text", "kimi_linear", "olmo_hybrid", "bailing_hybrid", "lfm2", "lfm2_moe"}
# Llama 4's class multiplies every token by every expert; shardsim counts as its kernels do.
# Gemma 3 with images copies tokens' numbers where its vocabulary is so small that images are outside;
# Nemotron 3's layers are as many as their list says, which its files have.
OTHERWISE = {"llama4", "llama4_text", "gemma3", "nemotron_h"}
# By which saved may differ: masks that a class adds to a bias, where this program's attention has none;
# numbers of a few bytes.
SHARES = {"t5": 0.03, "mt5": 0.03, "umt5": 0.03, "switch_transformers": 0.03, "t5gemma": 1e-6,
          "minicpm3": 1e-5}
# What a class's loss reads, where it is no label for each token.
LABELS = {"ForSequenceClassification": "sequence", "ForNextSentencePrediction": "sequence",
          "ForQuestionAnswering": "span", "ForQuestionAnsweringSimple": "span", "Model": "none",
          "Encoder": "none", "ForPreTraining": "pretraining"}
NO_SENTENCES = {"Electra"}  # whose pretraining asks for each token alone
# Tied in transformers 5 whatever the file says, where checkpoints have heads of their own.
TIED_ANYWAY = {"t5", "mt5", "umt5", "longt5"}


def known_cases():
    """Cases of model_costs.json by architecture and family."""
    with open(os.path.join(os.path.dirname(__file__), "model_costs.json"), encoding="utf-8") as file:
        cases = json.load(file)
    return {(case["architecture"], case["config"]["model_type"]): case for case in reversed(cases)}


KNOWN_CASES = known_cases()


def shrink(keys, draw):
    """Small values of the sizes that a class has."""
    small = {}
    for key, value in keys.items():
        sized = isinstance(value, int) and not isinstance(value, bool)
        if key == "head_dim" and "qk_rope_head_dim" in keys:
            continue  # which the class makes of the others
        if key in SIZES and (sized or value is None and key in MADE_SMALL_FROM_NONE):
            small[key] = draw.choice(SIZES[key])
        if "layerdrop" in key:
            small[key] = 0.0
        if key in ("pad_token_id", "bos_token_id", "eos_token_id") and isinstance(value, int):
            small[key] = min(value, 3)
        if key == "pad_token_id" and value is None:
            small[key] = 0  # by which classifiers find the last token
        if isinstance(value, dict) and "model_type" in value:
            small[key] = {"model_type": value["model_type"]} | shrink(value, draw)
    return small


def mutation(key, value, keys, draw):
    """Another value of a key, or None."""
    if key in LEFT or key.startswith("_") or "layerdrop" in key:
        return None
    if key == "head_dim" and "qk_rope_head_dim" in keys:
        return None
    if isinstance(value, bool):
        return not value
    if isinstance(value, str) and value in ACTIVATIONS:
        return draw.choice(ACTIVATIONS)
    if key in SIZES:
        return draw.choice(SIZES[key])
    if isinstance(value, float) and "drop" in key:
        return draw.choice([0.0, 0.1])
    if key == "sliding_window":
        return draw.choice([16, 32])
    if key == "layer_types" and isinstance(value, list):
        return [draw.choice(sorted(set(value))) for _ in value]
    if isinstance(value, int) and 0 < value < 9 and "token" not in key:
        return draw.choice([1, 2, 3, 4])
    return None


def mutations(keys, draw, changes):
    """So many keys or fewer with other values."""
    able = [key for key in keys if mutation(key, keys[key], keys, draw) is not None]
    drawn_values = {key: mutation(key, keys[key], keys, draw)
                    for key in draw.sample(able, min(changes, len(able)))}
    return {key: value for key, value in drawn_values.items() if value != keys[key]}


def drawn(family, architecture, draw, changes):
    """(case, keys that get another value, whether the file has all keys)."""
    start = KNOWN_CASES.get((architecture, family), {})
    small = {key: value for key, value in start.get("config", {}).items() if key != "model_type"}
    full = bool(small) or draw.random() < 0.5  # those cases leave sizes out
    small = small or shrink(CONFIG_MAPPING[family]().to_dict(), draw)
    known = CONFIG_MAPPING[family](**small).to_dict()
    mutated = mutations(known, draw, changes)
    if family in TIED_ANYWAY:
        mutated.pop("tie_word_embeddings", None)
    if isinstance(small.get("text_config"), dict):
        of_text = mutations(known["text_config"], draw, changes)
        mutated["text_config"] = small["text_config"] | of_text
    share = {"share": SHARES[family]} if family in SHARES else {}
    for ending, labels in LABELS.items():
        if architecture.endswith(ending) and architecture.removesuffix(ending) not in NO_SENTENCES:
            share["labels"] = labels
    config = {"model_type": family} | small
    return start | share | {"architecture": architecture, "config": config}, mutated, full


def with_keys(case, mutated):
    return case | {"config": case["config"] | mutated}


def comparison(case, shardsim, full):
    """(differences, None), or (None, why transformers says nothing)."""
    messages, why = comparison_on(case, shardsim, full)
    if why and "meta" in why:  # autograd reads a number
        return comparison_on(case | {"fake": True}, shardsim, full)
    return messages, why


def comparison_on(case, shardsim, full):
    inside = case["config"].get("text_config")
    scans = case["config"]["model_type"] in SCANS or (
        isinstance(inside, dict) and inside.get("model_type") in SCANS)
    try:
        with torch.device("meta"), contextlib.redirect_stdout(io.StringIO()):
            model, config = model_costs.build(case)
    except Exception as error:  # whatever transformers raises where it cannot
        return None, f"{type(error).__name__}: {str(error)[:150]}"
    why = None
    try:
        flops = (0, 0) if scans else [sum(by_operator.values()) for by_operator in
                                      model_costs.count_flops(case, BATCH, SEQUENCE)]
        saved = 0 if scans else model_costs.count_saved(case, BATCH, SEQUENCE)[0]
    except Exception as error:  # of what reads more than text: its parameters alone are compared
        why = f"{type(error).__name__}: {str(error)[:150]}"
        if "meta" in why and not case.get("fake"):
            return None, why
    written = config if full else case["config"]
    report, error = ask_with(shardsim, written | {"architectures": [case["architecture"]]},
                             "--batch", str(BATCH), "--sequence", str(SEQUENCE))
    if report is None and "reads no tokens" in error:
        report, error = ask_with(shardsim, written | {"architectures": [case["architecture"]]})
    if report is None:
        return [f"refused: {error[:300]}"], None
    messages = differing_parameters(model, report)
    if scans or why:
        return messages, None
    return messages + differing_costs(case, report, flops, saved), None


def differing_parameters(model, report):
    expected, ties = shapes_of(model)
    found = predicted_shapes(report["parameters"])
    messages = [f"{name}: expected {expected.get(name)}, found {found.get(name)}"
                for name in sorted(expected.keys() | found.keys())
                if expected.get(name) != found.get(name)]
    if ties != sorted(sorted(group) for group in report["tied"]):
        messages.append(f"ties: expected {ties}, found {report['tied']}")
    return messages


def differing_costs(case, report, flops, saved):
    forward, backward = flops
    found, messages = report["flops"], []
    if found["forward"] != forward:
        messages.append(f"forward: {found['forward']} of {forward}")
    if found["forward_backward"] != forward + backward:
        messages.append(f"both: {found['forward_backward']} of {forward + backward}")
    gap = report["saved_activation_bytes"] / saved - 1
    if abs(gap) > case.get("share", 0) + 1e-9:
        messages.append(f"saved: {100 * gap:+.4f} %")
    return messages


def smaller(case, mutated, shardsim, full):
    """Fewer keys that make it differ all the same."""
    for key in list(mutated):
        rest = {name: value for name, value in mutated.items() if name != key}
        messages, why = comparison(with_keys(case, rest), shardsim, full)
        if why is None and messages:
            mutated = rest
    return mutated


def is_refusal(messages):
    """One clear error for what is not built; a key that has a default is none."""
    return messages[0].startswith("refused") and "missing key" not in messages[0]


def run_family(family, architecture, arguments, counts):
    draw = random.Random(f"{arguments.seed} {architecture} {family}")
    for number in range(arguments.count):
        changes = arguments.changes if number > 0 else 0
        try:
            case, mutated, full = drawn(family, architecture, draw, changes)
        except Exception as error:  # of defaults that no model has
            print(f"{architecture} {family}: passed over, {str(error)[:100]}", flush=True)
            return
        messages, why = comparison(with_keys(case, mutated), arguments.shardsim, full)
        if why:
            print(f"{architecture} {family} {mutated}: passed over, {why}", flush=True)
            continue
        counts["compared"] += 1
        if not messages:
            continue
        mutated = smaller(case, mutated, arguments.shardsim, full)
        messages, _ = comparison(with_keys(case, mutated), arguments.shardsim, full)
        counts["refused" if is_refusal(messages) else "differ"] += 1
        print(f"{architecture} {family}: {'all keys' if full else 'as drawn'}, {mutated} of "
              f"{json.dumps(case['config'])}")
        for message in messages[:4]:
            print(f"    {message}", flush=True)


def options(description, drawn, changes):
    """What every drawing is told: of `drawn` (families, cases), how many keys change."""
    parser = argparse.ArgumentParser(description=description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shardsim")
    parser.add_argument("--only", default="", help=f"{drawn} whose name contains this")
    parser.add_argument("--count", type=int, default=3, help=f"configurations of each of the {drawn}")
    parser.add_argument("--changes", type=int, default=changes, help="keys that change, at most")
    parser.add_argument("--seed", type=int, default=1)
    return parser


def told(counts):
    """Says them; the exit status."""
    print(", ".join(f"{number} {what}" for what, number in counts.items()))
    return 1 if counts["differ"] else 0


def main():
    parser = options(__doc__, "families", changes=4)
    parser.add_argument("--task", default="CAUSAL_LM", help="of transformers' tables; MODEL: layers alone")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    known = known_architectures(arguments.shardsim)
    task = f"MODEL_FOR_{arguments.task}" if arguments.task != "MODEL" else "MODEL"
    counts = {"compared": 0, "refused": 0, "differ": 0}
    for family, entry in getattr(modeling_auto, f"{task}_MAPPING_NAMES").items():
        for architecture in sorted(known.intersection(classes_of(entry))):
            if arguments.only in architecture and family not in OTHERWISE:
                run_family(family, architecture, arguments, counts)
    return told(counts)


if __name__ == "__main__":
    sys.exit(main())
