"""Steps that megatron_steps.py compares: a model, degrees and what Megatron-Core is told beside them.

Models have the real ones' dimensions and few layers. A case: model, world size, rank, what differs
from DEFAULTS (the words are those of the records of tests/golden/megatron).

Left out is what is known to differ: with instances and stages Megatron-Core 0.16.1 reduces twice what
its schedule has begun to (finish_grad_sync, is_first_batch); it computes layers of multi-token
prediction again, and the plan keeps them; with etp 1 and ep 1 under tp it adds up no gradients of
experts over tp, whose devices see different tokens, and the plan does; under a split sequence
multi-token prediction sends neighbours a token's number, and the plan does not; cross entropy in one
kernel keeps more in the plan than Megatron's own (up to 6 % of small models)."""

DEFAULTS = {
    "tp": 1, "pp": 1, "vpp": None, "cp": 1, "ep": 1, "etp": None, "sp": False, "seq": 2048, "mbs": 1,
    "microbatches": 1, "dist_opt": True, "overlap_grad": True, "overlap_param": True,
    "grad_fp32": True, "recompute": None, "ce_fusion": False, "wgrad_fusion": True, "instances": 1,
    "bucket_size": None, "busbw": False, "avg": False, "layers": 4, "per_token": False,
    "dispatcher": "alltoall", "shared_overlap": False, "layout": None, "first": None, "last": None,
    "emb_split": False, "loss_split": False, "group": None, "mtp": 0, "tied": None, "clip": 1.0,
    "capacity": None,
}


def llama(name, hidden, ffn, heads, groups, vocabulary, **more):
    return {"name": name, "num_layers": 32, "hidden_size": hidden, "ffn_hidden_size": ffn,
            "num_attention_heads": heads, "num_query_groups": groups, "vocab_size": vocabulary,
            "normalization": "RMSNorm", "gated_linear_unit": True, "add_bias_linear": False,
            "position_embedding_type": "rope", "untie": True, **more}


def experts(count, chosen, width, **more):
    return {"num_moe_experts": count, "moe_router_topk": chosen, "moe_ffn_hidden_size": width,
            "moe_router_load_balancing_type": "aux_loss", "moe_aux_loss_coeff": 0.01, **more}


def gpt(name, hidden, heads, positions, **more):
    return {"name": name, "num_layers": 24, "hidden_size": hidden, "ffn_hidden_size": 4 * hidden,
            "num_attention_heads": heads, "num_query_groups": heads, "vocab_size": 50257,
            "normalization": "LayerNorm", "gated_linear_unit": False, "add_bias_linear": True,
            "position_embedding_type": "learned_absolute", "untie": False,
            "max_position_embeddings": positions, **more}


MODELS = {
    "llama2-7b": llama("llama2-7b", 4096, 11008, 32, 32, 32000),
    "llama2-70b": llama("llama2-70b", 8192, 28672, 64, 8, 32000),
    "llama3-8b": llama("llama3-8b", 4096, 14336, 32, 8, 128256),
    "qwen3-8b": llama("qwen3-8b", 4096, 12288, 32, 8, 151936, qk_layernorm=True, kv_channels=128),
    "qwen3-4b": llama("qwen3-4b", 2560, 9728, 32, 8, 151936, qk_layernorm=True, kv_channels=128,
                      untie=False),
    "gpt3-1.3b": gpt("gpt3-1.3b", 2048, 16, 2048),
    "gpt3-22b": gpt("gpt3-22b", 6144, 64, 2048),
    "mixtral-8x7b": llama("mixtral-8x7b", 4096, 14336, 32, 8, 32000, **experts(8, 2, 14336)),
    "mixtral-8x22b": llama("mixtral-8x22b", 6144, 16384, 48, 8, 32768, **experts(8, 2, 16384)),
    "qwen3-30b-a3b": llama("qwen3-30b-a3b", 2048, 6144, 32, 4, 151936, qk_layernorm=True,
                           kv_channels=128, **experts(128, 8, 768)),
    "deepseek-v3": llama(
        "deepseek-v3", 7168, 18432, 128, 128, 129280, multi_latent_attention=True, q_lora_rank=1536,
        kv_lora_rank=512, qk_head_dim=128, qk_pos_emb_head_dim=64, v_head_dim=128, qk_layernorm=True,
        moe_shared_expert_intermediate_size=2048, moe_layer_freq=[0, 1, 1, 1],
        moe_router_score_function="sigmoid", moe_router_enable_expert_bias=True,
        moe_router_num_groups=8, moe_router_group_topk=4, moe_router_topk_scaling_factor=2.5,
        moe_router_dtype="fp32",
        **{**experts(256, 8, 2048), "moe_router_load_balancing_type": "seq_aux_loss"}),
    "deepseek-v2-lite": llama(
        "deepseek-v2-lite", 2048, 10944, 16, 16, 102400, multi_latent_attention=True, q_lora_rank=None,
        kv_lora_rank=512, qk_head_dim=128, qk_pos_emb_head_dim=64, v_head_dim=128, qk_layernorm=True,
        moe_shared_expert_intermediate_size=2816, moe_layer_freq=[0, 1, 1, 1],
        **experts(64, 6, 1408)),
}

CASES = [
    ("llama2-7b", 8, 3, {"tp": 2, "sp": True, "microbatches": 2}),
    ("llama2-7b", 6, 5, {"bucket_size": 30000000}),
    ("llama2-7b", 1, 0, {}),
    ("llama2-7b", 8, 7, {"tp": 8}),
    ("llama2-7b", 8, 1, {"tp": 8, "sp": True, "clip": 0.0}),
    ("llama2-7b", 16, 9, {"tp": 4, "cp": 2, "sp": True, "mbs": 2}),
    ("llama2-7b", 8, 0, {"cp": 8, "seq": 16384, "recompute": "full"}),
    ("llama2-7b", 8, 2, {"pp": 2, "microbatches": 4, "overlap_grad": False, "overlap_param": False}),
    ("llama2-7b", 8, 6, {"pp": 4, "microbatches": 8, "layers": 8, "dist_opt": False,
                         "overlap_param": False}),
    ("llama2-70b", 16, 4, {"pp": 4, "tp": 2, "sp": True, "vpp": 2, "layers": 8, "microbatches": 8}),
    ("llama2-70b", 16, 12, {"pp": 4, "tp": 2, "sp": True, "vpp": 2, "layers": 8, "microbatches": 8,
                            "group": 8}),
    ("llama2-70b", 8, 3, {"pp": 2, "tp": 2, "vpp": 2, "layers": 6, "microbatches": 4,
                          "layout": "Et|tt|tt|tL"}),
    ("llama2-70b", 8, 7, {"pp": 2, "tp": 2, "layers": 6, "microbatches": 4, "first": 2}),
    ("llama2-70b", 8, 1, {"pp": 2, "tp": 2, "layers": 6, "microbatches": 2, "last": 2}),
    ("llama2-70b", 8, 5, {"pp": 2, "layers": 6, "emb_split": True, "loss_split": True,
                          "microbatches": 3}),
    ("llama3-8b", 8, 0, {"ce_fusion": True, "tp": 4, "sp": True, "recompute": ["core_attn"]}),
    ("llama3-8b", 8, 0, {"tp": 2, "sp": True, "recompute": ["mlp"], "microbatches": 2}),
    ("llama3-8b", 16, 15, {"instances": 4, "tp": 2, "sp": True}),
    ("llama3-8b", 16, 3, {"instances": 2, "overlap_grad": False, "overlap_param": False}),
    ("llama3-8b", 8, 3, {"per_token": True, "tp": 2, "microbatches": 2}),
    ("llama3-8b", 8, 3, {"tied": True}),
    ("llama3-8b", 8, 0, {"tied": True, "pp": 4, "microbatches": 4}),
    ("llama3-8b", 16, 14, {"tied": True, "pp": 4, "microbatches": 4, "tp": 2, "sp": True}),
    ("llama3-8b", 8, 4, {"grad_fp32": False, "dist_opt": False, "overlap_param": False, "tp": 2}),
    ("llama3-8b", 12, 4, {"busbw": True, "microbatches": 3}),
    ("qwen3-8b", 8, 0, {"tp": 2, "sp": True}),
    ("qwen3-8b", 8, 0, {"tp": 2}),
    ("qwen3-4b", 8, 6, {"tp": 2, "sp": True, "pp": 2, "microbatches": 4}),
    ("gpt3-1.3b", 8, 3, {"mbs": 4}),
    ("gpt3-1.3b", 8, 3, {"tp": 2, "recompute": "full"}),
    ("gpt3-22b", 8, 0, {"tp": 8, "sp": True, "mbs": 4, "recompute": ["core_attn"]}),
    ("gpt3-22b", 16, 9, {"tp": 4, "sp": True, "pp": 2, "vpp": 2, "microbatches": 6}),
    ("mixtral-8x7b", 8, 5, {"ep": 2, "seq": 4096}),
    ("mixtral-8x7b", 8, 0, {"ep": 8, "pp": 1, "microbatches": 2, "capacity": 1.25}),
    ("mixtral-8x7b", 16, 3, {"ep": 4, "tp": 2, "sp": True, "pp": 2, "microbatches": 4, "etp": 1}),
    ("mixtral-8x7b", 16, 3, {"ep": 4, "tp": 2, "sp": True, "cp": 2, "dispatcher": "allgather"}),
    ("mixtral-8x22b", 16, 3, {"ep": 8, "tp": 2, "sp": True, "etp": 1, "recompute": "full"}),
    ("mixtral-8x22b", 16, 3, {"tp": 4, "sp": True, "ep": 2, "etp": 4}),
    ("mixtral-8x22b", 8, 3, {"tp": 4, "sp": True, "ep": 1}),
    ("mixtral-8x7b", 8, 3, {}),
    ("mixtral-8x7b", 8, 3, {"ep": 4, "recompute": ["moe"]}),
    ("qwen3-30b-a3b", 8, 3, {"ep": 8, "recompute": ["core_attn", "moe"]}),
    ("qwen3-30b-a3b", 16, 3, {"ep": 8, "tp": 2, "sp": True, "pp": 2, "vpp": 2, "microbatches": 4,
                              "etp": 1}),
    ("deepseek-v3", 32, 9, {"ep": 16, "pp": 2, "microbatches": 4}),
    ("deepseek-v3", 32, 31, {"ep": 32, "mtp": 1}),
    ("deepseek-v3", 16, 1, {"ep": 8, "tp": 2, "sp": True, "etp": 1, "recompute": ["mlp"]}),
    ("deepseek-v3", 16, 1, {"ep": 8, "pp": 2, "vpp": 2, "microbatches": 4}),
    ("deepseek-v2-lite", 8, 1, {"ep": 8}),
    ("deepseek-v2-lite", 8, 1, {"ep": 4, "tp": 2, "sp": True}),
    ("deepseek-v2-lite", 4, 1, {"ep": 2, "microbatches": 3, "overlap_grad": False,
                                "overlap_param": False, "recompute": "full"}),
    ("mixtral-8x22b", 8, 1, {"tp": 4, "sp": True, "seq": 1024, "microbatches": 2, "ep": 2, "etp": 1,
                             "capacity": 1.0, "recompute": ["core_attn"]}),
    ("mixtral-8x22b", 16, 1, {"tp": 4, "sp": True, "seq": 4096, "microbatches": 3, "ep": 4,
                              "overlap_param": False}),
    ("llama2-7b", 12, 3, {"tp": 2, "pp": 2, "vpp": 2, "seq": 4096, "microbatches": 4,
                          "overlap_grad": False, "overlap_param": False}),
    ("deepseek-v3", 16, 6, {"tp": 2, "sp": True, "seq": 1024, "ep": 4}),
    ("llama2-7b", 6, 1, {"bucket_size": 100000000, "overlap_grad": False, "overlap_param": False}),
    ("deepseek-v2-lite", 8, 1, {"tp": 2, "sp": True, "ep": 4, "shared_overlap": True, "seq": 1024}),
    ("deepseek-v3", 16, 6, {"tp": 2, "sp": True, "ep": 8, "etp": 1, "mtp": 1, "seq": 1024,
                            "dispatcher": "allgather", "bucket_size": 3000000}),
    ("deepseek-v3", 16, 13, {"pp": 4, "ep": 2, "etp": 1, "mtp": 1, "first": 1, "microbatches": 4,
                             "overlap_grad": False, "overlap_param": False}),
    ("mixtral-8x7b", 16, 12, {"tp": 2, "cp": 2, "sp": True, "ep": 4, "instances": 2, "seq": 1024,
                              "bucket_size": 5000000}),
    ("qwen3-30b-a3b", 4, 1, {"pp": 2, "ep": 2, "vpp": 2, "mbs": 4, "microbatches": 4}),
]


def cases():
    for number, (model, world, rank, more) in enumerate(CASES):
        words = " ".join(f"{key}={value}" for key, value in more.items())
        yield {"id": f"{number:02} {model} of {world}, rank {rank} {words}".strip(),
               "model": MODELS[model], "world_size": world, "rank": rank,
               "settings": {**DEFAULTS, **more}}
