"""Small models that transformers writes with save_pretrained, read back by `shardsim import
safetensors FOLDER --model FOLDER/config.json`: the file's tensors are the model's, none more.

    checkpoints.py SHARDSIM

transformers writes names and shapes as files on the hub have them: experts one by one, older
prefixes.
"""

import os
import subprocess
import sys
import tempfile

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")

import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

DECODER = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
           "num_key_value_heads": 2, "intermediate_size": 48, "vocab_size": 128, "head_dim": 16}
IMAGES = {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
          "intermediate_size": 96, "image_size": 32, "patch_size": 8}
CASES = [
    ("LlamaForCausalLM", "llama", DECODER),
    ("GPT2LMHeadModel", "gpt2", {"n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 128}),
    ("GPTNeoXForCausalLM", "gpt_neox", {**DECODER, "num_key_value_heads": 4}),
    ("MixtralForCausalLM", "mixtral", {**DECODER, "num_local_experts": 4}),
    ("PhimoeForCausalLM", "phimoe", {**DECODER, "num_local_experts": 4}),
    ("MiniMaxM2ForCausalLM", "minimax_m2", {**DECODER, "num_local_experts": 4, "num_experts_per_tok": 2, "rotary_dim": 8}),
    ("Qwen2MoeForCausalLM", "qwen2_moe",
     {**DECODER, "num_experts": 4, "moe_intermediate_size": 32,
      "shared_expert_intermediate_size": 40}),
    ("Qwen3MoeForCausalLM", "qwen3_moe",
     {**DECODER, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}),
    ("OlmoeForCausalLM", "olmoe", {**DECODER, "num_experts": 4, "num_experts_per_tok": 2}),
    ("GraniteMoeForCausalLM", "granitemoe",
     {**DECODER, "num_local_experts": 4, "num_experts_per_tok": 2}),
    ("DeepseekV3ForCausalLM", "deepseek_v3",
     {**DECODER, "num_key_value_heads": 4, "n_routed_experts": 4, "num_experts_per_tok": 2,
      "n_group": 1, "topk_group": 1, "moe_intermediate_size": 32, "first_k_dense_replace": 1,
      "q_lora_rank": 24, "kv_lora_rank": 16, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8,
      "v_head_dim": 16}),
    ("JambaForCausalLM", "jamba", {**DECODER, "num_hidden_layers": 8, "num_experts": 4}),
    ("NemotronHForCausalLM", "nemotron_h",
     {**DECODER, "num_hidden_layers": 4, "hybrid_override_pattern": "M*-E",
      "mamba_num_heads": 8, "mamba_head_dim": 16, "n_groups": 2, "ssm_state_size": 16,
      "n_routed_experts": 4, "moe_intermediate_size": 32,
      "moe_shared_expert_intermediate_size": 32}),
    ("T5ForConditionalGeneration", "t5",
     {"d_model": 64, "d_kv": 16, "d_ff": 96, "num_layers": 2, "num_heads": 4, "vocab_size": 128}),
    ("BertForMaskedLM", "bert",
     {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
      "intermediate_size": 96, "vocab_size": 128}),
    ("ViTForImageClassification", "vit", IMAGES),
    ("DeiTForImageClassification", "deit", IMAGES),
    ("Dinov2Model", "dinov2", {**IMAGES, "use_swiglu_ffn": True}),
    ("SwinForImageClassification", "swin",
     {"embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4, "image_size": 32}),
    ("ResNetForImageClassification", "resnet",
     {"embedding_size": 8, "hidden_sizes": [16, 32], "depths": [1, 2]}),
]


def main():
    shardsim = sys.argv[1]
    failed = 0
    for architecture, family, keys in CASES:
        model = getattr(transformers, architecture)(CONFIG_MAPPING[family](**keys))
        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder)
            run = subprocess.run([shardsim, "import", "safetensors", folder, "--model",
                                  os.path.join(folder, "config.json"), "--format", "csv"],
                                 capture_output=True, text=True, check=False)
        tensors = max(run.stdout.count("\n") - 1, 0)
        failed += run.returncode != 0
        print(f"{architecture}: {tensors} tensors {run.stderr.strip()}")
    print(f"{len(CASES)} checkpoints, {failed} differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
