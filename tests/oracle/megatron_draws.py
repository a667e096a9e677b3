"""Megatron-Core's configurations at random, as megatron_cases.py has them: by a seed and a number."""

import random

import megatron_cases

LLAMAS = ("llama2-7b", "llama2-70b", "llama3-8b", "qwen3-8b", "qwen3-4b")
GPTS = ("gpt3-1.3b", "gpt3-22b")
MIXTURES = ("mixtral-8x7b", "mixtral-8x22b", "qwen3-30b-a3b")
LATENTS = ("deepseek-v3", "deepseek-v2-lite")


def divisors(number, most=64):
    return [n for n in range(1, min(number, most) + 1) if number % n == 0]


def draw_model(dice):
    """Its name and dimensions: those of a released one, of which some are others."""
    kind = dice.choice([LLAMAS, LLAMAS, GPTS, MIXTURES, MIXTURES, LATENTS, LATENTS])
    name = dice.choice(kind)
    model = dict(megatron_cases.MODELS[name])
    if kind is LLAMAS and dice.random() < 0.3:
        model["num_query_groups"] = dice.choice([4, 8, model["num_attention_heads"]])
    if kind is not GPTS and dice.random() < 0.3:
        model["vocab_size"] = dice.choice([32000, 50257, 100000])
    if "num_moe_experts" in model and dice.random() < 0.4:
        model["num_moe_experts"] //= dice.choice([1, 2])
        model["moe_router_topk"] = dice.choice([n for n in (2, 4, 6) if n < model["num_moe_experts"]])
    if name == "mixtral-8x7b" and dice.random() < 0.3:
        model["moe_router_dtype"] = "fp32"
    if "num_moe_experts" in model and dice.random() < 0.2:
        model["moe_router_load_balancing_type"] = dice.choice(["aux_loss", "seq_aux_loss"])
    if model.get("moe_router_num_groups") and model["moe_router_topk"] % model["moe_router_group_topk"]:
        del model["moe_router_num_groups"], model["moe_router_group_topk"]
    return name, model


def draw_degrees(dice, model):
    tensor = dice.choice([n for n in (1, 1, 2, 4, 8) if model["num_query_groups"] % n == 0])
    stages = dice.choice([1, 1, 1, 2, 2, 4])
    context = dice.choice([1, 1, 1, 2, 4])
    data = dice.choice([1, 1, 2, 2, 3, 4, 8])
    while tensor * context * data > 32:
        data = max(1, data // 2)
        context = max(1, context // 2)
    degrees = {"tp": tensor, "pp": stages, "cp": context}
    if tensor > 1:
        degrees["sp"] = "num_moe_experts" in model or dice.random() < 0.7
    if "num_moe_experts" in model:
        replicas = tensor * context * data
        experts = [n for n in divisors(replicas) if model["num_moe_experts"] % n == 0]
        degrees["ep"] = dice.choice(experts)
        if dice.random() < 0.6:
            left = [n for n in divisors(replicas // degrees["ep"], 8)
                    if n in (1, tensor) and model["moe_ffn_hidden_size"] % n == 0]
            degrees["etp"] = dice.choice(left)
        elif (replicas // degrees["ep"]) % tensor:
            degrees["etp"] = 1
        # It adds up no gradients of experts over tp there: megatron_cases.py.
        if degrees["ep"] == 1 and degrees.get("etp") == 1 and tensor > 1:
            degrees["etp"] = tensor
    return degrees, tensor * stages * context * data, data


def draw_stages(dice, settings):
    stages = settings["pp"]
    settings["microbatches"] = dice.choice([1, 2, 3, 4, 6, 8] if stages > 1 else [1, 1, 1, 2, 3])
    settings["layers"] = stages * dice.choice([1, 1, 2]) if stages > 2 else dice.choice([2, 3, 4, 5])
    if stages == 1:
        return
    kind = dice.choice(["even", "interleaved", "interleaved", "ends", "counted", "layout"])
    if kind == "interleaved":
        settings["vpp"] = dice.choice([2, 2, 3] if stages == 2 else [2])
        settings["layers"] = stages * settings["vpp"]
        settings["microbatches"] = stages * dice.choice([1, 2, 2])
        if dice.random() < 0.3:
            settings["group"] = settings["microbatches"]
    elif kind == "ends" and stages > 1:
        key, count = dice.choice(["first", "last"]), dice.choice([1, 2, 3])
        settings[key] = count
        settings["layers"] = count + (stages - 1) * dice.choice([1, 2])
    elif kind == "counted":
        embedding, loss = dice.choice([(True, True), (True, False), (False, True)])
        settings |= {"emb_split": embedding, "loss_split": loss}
        settings["layers"] = stages * 2 - embedding - loss
    elif kind == "layout":
        counts = [dice.choice([0, 1, 1, 2]) for _ in range(stages)]
        counts[0] += 1
        counts[-1] += 0 if sum(counts) > 1 else 1
        parts = ["t" * count for count in counts]
        settings["layout"] = "|".join(["E" + parts[0], *parts[1:-1], parts[-1] + "L"])
        settings["layers"] = sum(counts)
    else:
        settings["layers"] = stages * dice.choice([1, 2])


def draw_recomputed(dice, model):
    if dice.random() < 0.5:
        return None
    if dice.random() < 0.3:
        return "full"
    modules = ["core_attn", "layernorm"]
    if "num_moe_experts" in model:
        modules.append("moe")
    if model.get("multi_latent_attention"):
        modules += ["mla_up_proj", "mlp", "shared_experts"]
    elif "num_moe_experts" not in model:
        modules.append("mlp")
    return sorted(dice.sample(modules, dice.choice([1, 1, 2])))


def draw_optimizer(dice, settings, data):
    settings["dist_opt"] = dice.random() < 0.8
    settings["overlap_grad"] = dice.random() < 0.7
    settings["overlap_param"] = (settings["dist_opt"] and settings["overlap_grad"]
                                 and dice.random() < 0.8)
    settings["grad_fp32"] = dice.random() < 0.8
    settings["clip"] = dice.choice([1.0, 1.0, 0.0])
    if settings["overlap_grad"] and dice.random() < 0.4:
        settings["bucket_size"] = round(10 ** dice.uniform(6.5, 8.5))
    settings["busbw"] = settings["dist_opt"] and dice.random() < 0.15
    settings["per_token"] = dice.random() < 0.2
    settings["avg"] = not settings["per_token"] and dice.random() < 0.2
    whole = data * settings["cp"]
    experts = whole * settings["tp"] // ((settings.get("etp") or settings["tp"]) * settings.get("ep", 1))
    shares = [n for n in divisors(whole) if n > 1 and experts % n == 0]
    # It reduces twice what its schedule has begun to: megatron_cases.py.
    twice = settings["pp"] > 1 and settings["overlap_grad"]
    if shares and settings["dist_opt"] and not twice and dice.random() < 0.2:
        settings["instances"] = dice.choice(shares)


def draw(seed, number):
    dice = random.Random(f"{seed} {number}")
    name, model = draw_model(dice)
    settings, world, data = draw_degrees(dice, model)
    draw_stages(dice, settings)
    settings["mbs"] = dice.choice([1, 1, 2, 4])
    settings["seq"] = settings["cp"] * dice.choice([512, 1024, 2048, 4096])
    if name in GPTS:
        settings["seq"] = model["max_position_embeddings"]
    settings["recompute"] = draw_recomputed(dice, model)
    draw_optimizer(dice, settings, data)
    settings["tied"] = dice.choice([None, None, None, True, False]) if name not in GPTS else None
    if model.get("moe_layer_freq"):
        dense = dice.choice([0, 1, 1, settings["layers"] - 1])
        model["moe_layer_freq"] = [0] * dense + [1] * (settings["layers"] - dense)
    if "num_moe_experts" in model:
        settings["dispatcher"] = dice.choice(["alltoall", "alltoall", "allgather"])
        if settings["dispatcher"] == "alltoall" and dice.random() < 0.25:
            settings["capacity"] = dice.choice([1.0, 1.25, 2.0])
    if name in LATENTS and settings["dispatcher"] == "alltoall" and dice.random() < 0.3:
        settings["shared_overlap"] = "shared_experts" not in (settings["recompute"] or [])
    alone = settings["recompute"] is None and settings["cp"] == 1  # the others: megatron_cases.py
    if name == "deepseek-v3" and settings.get("layout") is None and dice.random() < 0.4:
        settings["mtp"] = int(alone)
    more = {key: value for key, value in settings.items()
            if value != megatron_cases.DEFAULTS[key]}
    words = " ".join(f"{key}={value}" for key, value in more.items())
    return {"id": f"{seed}-{number:03} {name} of {world} {words}", "model": model, "world_size": world,
            "rank": dice.randrange(world), "settings": {**megatron_cases.DEFAULTS, **more}}
