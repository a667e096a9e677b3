"""Training steps of DeepSpeed's engine on live models beside those of the plan.

    deepspeed_steps.py SHARDSIM [--only TEXT] [--count 50] [--first 0] [--seed 1] [--case JSON] [--show]

Cases are drawn by the seed: a model of transformers with few layers, a number of ranks, a stage of ZeRO
and its buckets, thresholds and options, types, accumulation, clipping, what is frozen, checkpoints of
activations. Compared are, of rank 0, of ZeRO 1 and 2 of the one that holds most: the calls of the second
step in order with kind, ranks, bytes and type; the bytes that are held behind it; the most within it. The loss of tokens is small beside that.

Modules are registered in the order of their use, as the plan lists parameters, those without
parameters are no modules, and attention is one; ZeRO 3 has no leaf modules. Activations are checkpointed
without reentrance. What the plan is known to have otherwise is not drawn, or said by known_difference.
Bytes that are held are to be within a thousandth, peaks within 3 % but for those of known_peak; not so with
an optimizer on the host, whose memory is that of the device here.
"""

import argparse
import json
import multiprocessing
import os
import random
import re
import subprocess
import sys
import tempfile
import traceback

import deepspeed_engine as engine_of

import torch
import transformers
from torch._subclasses.fake_tensor import FakeTensorMode
from transformers import AttentionInterface
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

import model_costs

AttentionInterface.register("deepspeed_fused", engine_of.attention_in_a_module(model_costs.fused))
ALL_MASK_ATTENTION_FUNCTIONS.register("deepspeed_fused", model_costs.mask_of)

MODELS = {
    "llama": ("LlamaForCausalLM", {"hidden_size": 256, "intermediate_size": 704, "num_attention_heads": 8,
                                   "num_key_value_heads": 2, "vocab_size": 4000}),
    "qwen3": ("Qwen3ForCausalLM", {"hidden_size": 256, "intermediate_size": 768, "num_attention_heads": 8,
                                   "num_key_value_heads": 4, "head_dim": 64, "vocab_size": 5000,
                                   "tie_word_embeddings": True}),
    "qwen2": ("Qwen2ForCausalLM", {"hidden_size": 192, "intermediate_size": 512, "num_attention_heads": 6,
                                   "num_key_value_heads": 2, "vocab_size": 3001}),
    "gpt2": ("GPT2LMHeadModel", {"n_embd": 192, "n_head": 6, "vocab_size": 5025, "n_positions": 256,
                                 "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}),
    "mixtral": ("MixtralForCausalLM", {"hidden_size": 128, "intermediate_size": 256,
                                       "num_attention_heads": 4, "num_key_value_heads": 2,
                                       "num_local_experts": 4, "vocab_size": 2000}),
    "vit": ("ViTForImageClassification", {"hidden_size": 192, "intermediate_size": 768,
                                          "num_attention_heads": 3, "num_labels": 1000,
                                          "hidden_dropout_prob": 0.0,
                                          "attention_probs_dropout_prob": 0.0}),
    "opt": ("OPTForCausalLM", {"hidden_size": 128, "ffn_dim": 512, "num_attention_heads": 4,
                               "vocab_size": 3000, "word_embed_proj_dim": 128,
                               "max_position_embeddings": 512, "dropout": 0.0}),
}
LAYERS = {"gpt2": "n_layer"}
BATCH, SEQUENCE = 1, 16


def draw(seed, number):
    dice = random.Random(f"{seed} {number}")
    stage = dice.choice([0, 1, 2, 2, 3, 3, 3, 3])
    case = {"model": dice.choice([m for m in MODELS if m != "vit" or stage < 3]), "layers": dice.choice([2, 2, 3, 4]),
            "world": dice.choice([1, 2, 3, 4, 5, 6, 7, 8, 8, 12, 16, 24, 64]),
            "microbatches": dice.choice([1, 1, 1, 2, 3]), "dtype": dice.choice(["bf16", "bf16", "fp16", "fp32"]),
            "clip": dice.choice([0.0, 1.0, 1.0])}
    zero = {"stage": stage}
    size = lambda least, most: round(10 ** dice.uniform(least, most))
    if dice.random() < 0.7:
        zero["reduce_bucket_size"] = size(3, 7)
    if stage in (1, 2) and dice.random() < 0.3:
        zero["round_robin_gradients"] = True
    if stage and dice.random() < 0.3:
        zero["overlap_comm"] = dice.random() < 0.5
    if stage == 3:
        if dice.random() < 0.8:
            zero["stage3_param_persistence_threshold"] = dice.choice([0, 100, 200, 1000, size(2, 6)])
        if dice.random() < 0.8:
            zero["stage3_prefetch_bucket_size"] = dice.choice([0, size(3, 7)])
        if dice.random() < 0.3:
            zero["stage3_max_live_parameters"] = size(4, 7)
        if dice.random() < 0.5:
            zero["stage3_max_reuse_distance"] = dice.choice([0, size(3, 7)])
        if dice.random() < 0.5:
            zero["sub_group_size"] = size(3, 6)
        divisors = [n for n in range(2, case["world"] + 1) if case["world"] % n == 0]
        if divisors and dice.random() < 0.25:
            zero["zero_hpz_partition_size"] = dice.choice(divisors)
        if dice.random() < 0.15 and case["dtype"] != "fp32":
            zero["zero_quantized_weights"] = True
    if stage >= 2 and dice.random() < 0.1:
        zero["offload_optimizer"] = {"device": "cpu"}
    case["zero"] = zero
    if dice.random() < 0.2:
        case["trainable"] = dice.choice([[r"layers?\.|\bh\."], [r"norm|ln_"], ["embed|wte|head|classifier"],
                                         [r"\.(0|1)\."], ["q_proj|c_attn|query", "norm|ln_"]])
    if dice.random() < 0.2:
        case["checkpointing"] = True
    if stage == 3:
        if dice.random() < 0.1 and not zero.get("zero_quantized_weights"):
            zero["stage3_allgather_sequential"] = True
        if dice.random() < 0.2:
            zero["stage3_model_persistence_threshold"] = size(3, 6)
    if stage in (1, 2):
        if dice.random() < 0.2:
            zero["reduce_scatter"] = False
        if dice.random() < 0.15 and case["clip"] == 0 and "offload_optimizer" not in zero:
            zero["compute_grad_norm"] = False
        if dice.random() < 0.15 and case["dtype"] == "bf16":
            case["check_grad_overflow"] = False
    return case


def settings_of(case):
    settings = {"train_micro_batch_size_per_gpu": BATCH,
                "gradient_accumulation_steps": case["microbatches"],
                "gradient_clipping": case["clip"],
                "zero_optimization": case["zero"] | {"leaf_module": {"classes": []}},
                "zero_allow_untested_optimizer": True, "zero_force_ds_cpu_optimizer": False}
    if case["dtype"] != "fp32":
        settings[case["dtype"]] = {"enabled": True}
    if "check_grad_overflow" in case:
        settings["bf16"]["check_grad_overflow"] = case["check_grad_overflow"]
    return settings


def config_of(case):
    architecture, keys = MODELS[case["model"]]
    keys = keys | {LAYERS.get(case["model"], "num_hidden_layers"): case["layers"]}
    config = CONFIG_MAPPING[case["model"]](**keys)
    return architecture, config


def losses_of(case):
    def of_tokens(model):
        tokens = torch.zeros(BATCH, SEQUENCE, dtype=torch.long)
        return model(input_ids=tokens, labels=tokens, return_dict=True).loss

    def of_pixels(model):
        pixels = torch.zeros(BATCH, 3, 224, 224, dtype=engine_of.MODEL_DTYPES[case["dtype"]])
        return model(pixel_values=pixels, labels=torch.zeros(BATCH, dtype=torch.long)).loss

    return of_pixels if case["model"] == "vit" else of_tokens


def pixels_of(case):
    """Bytes of the pictures of a microbatch, which a plan's memory here is without."""
    return 3 * 224 * 224 * engine_of.MODEL_DTYPES[case["dtype"]].itemsize if case["model"] == "vit" else 0


def fullest_rank(model, case):
    """Of ZeRO 1 and 2, whose gradients lie in parts that have room for all of each parameter of which
    they have something: a plan is that of the device that has most."""
    world, zero = case["world"], case["zero"]
    if zero["stage"] not in (1, 2):
        return 0
    sizes = [p.numel() for p in model.parameters() if p.requires_grad]
    if zero.get("round_robin_gradients"):
        sizes = [size for hand in range(world) for size in sizes[hand::world]]
    part = -(-sum(sizes) // (2 * world)) * 2
    whole = [0] * world
    begin = 0
    for size in sizes:
        for rank in range(begin // part, (begin + size - 1) // part + 1):
            whole[rank] += size
        begin += size
    return whole.index(max(whole))


def issued(case):
    architecture, config = config_of(case)
    with FakeTensorMode(allow_non_fake_inputs=True):
        with engine_of.Log():
            model = getattr(transformers, architecture)._from_config(
                config, dtype=engine_of.MODEL_DTYPES[case["dtype"]],
                attn_implementation="deepspeed_fused")
            model.tie_weights()
        model.config.use_cache = False
        loss = losses_of(case)
        with engine_of.Log():
            engine_of.in_order_of_use(model.eval(), lambda: loss(model))
        buffers = sum(b.numel() * b.element_size() for b in model.buffers())
        model.train()
        engine_of.hide_modules_without_parameters(model)
        if "trainable" in case:
            for name, parameter in model.named_parameters():
                parameter.requires_grad = any(re.search(p, name) for p in case["trainable"])
        if case.get("checkpointing"):
            model.gradient_checkpointing_enable({"use_reentrant": False})
            model.disable_input_require_grads()  # which it asks for, though frozen embeddings have none
        engine_of.open_world(case["world"], fullest_rank(model, case))
        engine, calls, held, peaks = engine_of.run_steps(model, settings_of(case), loss)
    return {"calls": calls, "held": held[1] - buffers, "peak": peaks[1] - buffers - pixels_of(case)}


def experiment_of(case):
    architecture, config = config_of(case)
    model = json.loads(config.to_json_string(use_diff=False)) | {"architectures": [architecture]}
    dtype = case["dtype"]
    step = {"model": model, "step": "train", "batch": case["world"] * case["microbatches"] * BATCH,
            "microbatches": case["microbatches"], "dropout": 0}
    if dtype != "bf16":
        step["precision"] = {"compute": dtype, "parameters": dtype, "gradients": dtype}
    if case["model"] != "vit":
        step["sequence"] = SEQUENCE
    if case["zero"]["stage"] == 0 and case["clip"]:  # from stage 1 on there is a norm whatever it says
        step["gradient_clipping"] = True
    if "trainable" in case:
        step["trainable"] = case["trainable"]
    if case.get("checkpointing"):
        step["rematerialization"] = "full"
    zero = case["zero"]
    names = {"stage": "zero_stage", "reduce_bucket_size": "bucket_elements",
             "round_robin_gradients": "round_robin_gradients",
             "stage3_prefetch_bucket_size": "prefetch_bucket_elements",
             "stage3_param_persistence_threshold": "persistence_threshold_elements",
             "stage3_max_live_parameters": "max_live_elements",
             "stage3_max_reuse_distance": "max_reuse_distance_elements",
             "sub_group_size": "sub_group_elements", "overlap_comm": "overlap_comm", "zero_hpz_partition_size": "hpz",
             "zero_quantized_weights": "qwz", "reduce_scatter": "reduce_scatter",
             "stage3_allgather_sequential": "allgather_sequential",
             "stage3_model_persistence_threshold": "model_persistence_elements",
             "compute_grad_norm": "clip_gradients"}
    strategy = {"name": "deepspeed", "batch_axes": ["world"]}
    strategy |= {names[key]: value for key, value in zero.items() if key in names}
    if "check_grad_overflow" in case:
        strategy["check_overflow"] = case["check_grad_overflow"]
    if "offload_optimizer" in zero:
        strategy["offload"] = {"optimizer": "cpu"}
    return {"workload": step, "mesh": {"world": case["world"]}, "strategy": strategy,
            "machine": "dgx-h100"}


def planned(shardsim, case):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "experiment.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(experiment_of(case), file)
        run = subprocess.run([shardsim, "plan", path, "--format", "json"], capture_output=True,
                             text=True, check=False)
    if run.returncode != 0:
        return {"error": run.stderr.strip()}
    plan = json.loads(run.stdout)
    program = plan["programs"][0]
    calls = []
    for task in program["tasks"]:
        if task["kind"] == "collective":
            call = plan["collectives"][task["work"]]
            ranks = engine_of.ranks_text(next(g for g in call["groups"] if 0 in g))
            calls.append(f"{call['kind']} {ranks} {call['payload_bytes']} {call['dtype']}")
    kept, peak = memory_of(program)
    return {"calls": calls, "held": kept, "peak": peak}


def memory_of(program):
    """Bytes of a rank that stay, and the most when tasks are through one after the other."""
    change = [0] * (len(program["tasks"]) + 1)
    kept = 0
    for buffer in program["buffers"]:
        if buffer["category"] == "inputs":
            continue
        if not buffer["freed_after"]:
            kept += buffer["bytes"]
        first = buffer["allocated_by"] or 0
        change[first] += buffer["bytes"]
        if buffer["freed_after"]:
            change[max(buffer["freed_after"]) + 1] -= buffer["bytes"]
    peak = now = 0
    for bytes_ in change:
        now += bytes_
        peak = max(peak, now)
    return kept, peak


def in_process(work, *arguments):
    """The result of a process of its own: groups and hooks of DeepSpeed are of its modules."""
    here, there = multiprocessing.Pipe()

    def call():
        try:
            there.send(work(*arguments))
        except BaseException:
            there.send({"error": traceback.format_exc()})

    process = multiprocessing.get_context("fork").Process(target=call)
    process.start()
    result = here.recv()
    process.join()
    return result


SHOW = []
HELD = 0.001
# How far peaks may be off; those of known_peak.
PEAK, FURTHEST_PEAK = 0.03, 0.05


def known_peak(case):
    """Why a peak is further off; None: it may not be."""
    zero = case["zero"]
    if zero["stage"] == 3 and zero.get("stage3_prefetch_bucket_size", 1):
        return "DeepSpeed's host asks ahead of the device, and frees behind it"
    return None


def known_difference(case):
    """Why calls differ; None: they may not."""
    zero = case["zero"]
    if case["model"] == "opt" and zero["stage"] == 3 and zero.get("stage3_prefetch_bucket_size", 1):
        return "OPTForCausalLM calls model.decoder and not model, which is a module in the plan"
    return None


def comparable(calls):
    """Parameters that stay whole are gathered at the end in the order of their registration."""
    last = len(calls)
    while last > 0 and calls[last - 1].startswith("all-gather"):
        last -= 1
    return calls[:last] + sorted(calls[last:])


def compare(shardsim, case, peaks):
    theirs, ours = in_process(issued, case), planned(shardsim, case)
    if "error" in theirs or "error" in ours:
        return ("both refuse" if "error" in theirs and "error" in ours else
                "DeepSpeed refuses" if "error" in theirs else "shardsim refuses",
                (theirs.get("error", "").strip().splitlines() or [""])[-1] + " | " + ours.get("error", ""))
    expected = comparable(theirs["calls"][1])
    ours["calls"] = comparable(ours["calls"])
    if SHOW:
        for i in range(max(len(expected), len(ours["calls"]))):
            pair = [c[i] if i < len(c) else "" for c in (ours["calls"], expected)]
            print(f"    {i:4} {pair[0]:45} {pair[1]:45} {'' if pair[0] == pair[1] else '*'}")
    if expected != ours["calls"]:
        at = next((i for i, (a, b) in enumerate(zip(expected, ours["calls"])) if a != b),
                  min(len(expected), len(ours["calls"])))
        show = lambda calls: calls[at] if at < len(calls) else "nothing"
        kind = "same calls, other order" if sorted(expected) == sorted(ours["calls"]) else "other calls"
        return kind, f"call {at} of {len(expected)}: {show(ours['calls'])}, DeepSpeed {show(expected)}"
    held, peak = ours["held"] / theirs["held"] - 1, ours["peak"] / theirs["peak"] - 1
    verdict = "calls equal"
    if "offload_optimizer" not in case["zero"]:
        verdict = "other memory" if abs(held) > HELD else verdict
        peaks.append(abs(peak))
        if abs(peak) > PEAK and not known_peak(case):
            verdict = "other peak"
    return verdict, f"{len(expected)} calls; held {held:+.2%}, peak {peak:+.2%}"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shardsim")
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--show", action="store_true", help="both lists of calls")
    parser.add_argument("--case", help="one, in place of those drawn")
    arguments = parser.parse_args()
    engine_of.put_in_place()
    SHOW[:] = [1] if arguments.show else []
    cases = [json.loads(arguments.case)] if arguments.case else [
        draw(arguments.seed, n) for n in range(arguments.first, arguments.first + arguments.count)]
    counts = {}
    failed = 0
    peaks = []
    for number, case in enumerate(cases, arguments.first):
        if arguments.only not in json.dumps(case):
            continue
        verdict, text = compare(arguments.shardsim, case, peaks)
        known = known_difference(case) if verdict.endswith(("calls", "order")) else None
        if known:
            verdict = "known to differ"
            text += f": {known}"
        failed += verdict not in ("calls equal", "known to differ", "both refuse")
        counts[verdict] = counts.get(verdict, 0) + 1
        print(f"{number}: {json.dumps(case)}\n  {verdict}: {text}", flush=True)
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())))
    within = sum(peak <= PEAK for peak in peaks)
    print(f"{within} of {len(peaks)} peaks within {PEAK:.0%}, the furthest {max(peaks, default=0):.1%}")
    return 1 if failed or max(peaks, default=0) > FURTHEST_PEAK else 0


if __name__ == "__main__":
    sys.exit(main())
