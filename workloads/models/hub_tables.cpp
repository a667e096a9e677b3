#include "workloads/models/hub_tables.hpp"

namespace shardsim::models {
namespace {

constexpr ExpertFiles projections{"gate_proj", "up_proj", "down_proj"};
constexpr ExpertFiles numbered{"w1", "w3", "w2"};

using Words = std::vector<std::string_view>;

Words gate_up() { return {".mlp.gate_proj.", ".mlp.up_proj."}; }
Words qkv() { return {".q_proj.", ".k_proj.", ".v_proj."}; }
Words convolutions() { return {".q_conv1d.", ".k_conv1d.", ".v_conv1d."}; }

// Experts lie one by one.
HubTable mixtures() {
  return {
      {.families =
           {"afmoe",       "cohere2_moe",    "deepseek_v2", "deepseek_v3",      "deepseek_v32",
            "dots1",       "flex_olmo",      "glm4_moe",    "glm4_moe_lite",    "glm4v_moe",
            "glm_moe_dsa", "hunyuan_v1_moe", "jamba",       "longcat_flash",    "mellum",
            "olmoe",       "qwen2_moe",      "qwen3_5_moe", "qwen3_5_moe_text", "qwen3_moe",
            "qwen3_next",  "solar_open",     "beam",        "dots3_note_text"},
       .experts = projections},
      {.families = {"exaone_moe"},
       .renamings = {{".mlp.gate.e_score_correction_bias", ".mlp.e_score_correction_bias"}},
       .experts = projections},
      {.families = {"flint"},
       .renamings = {{".self_attn.sinks", ".self_attn.softmax_offset"}},
       .experts = projections},
      {.families = {"kolibri1"},
       .renamings = {{".mlp.gate.e_score_correction_bias", ".moe.router.expert_bias"},
                     {".post_mlp_layernorm.", ".post_ffn_norm."},
                     {".post_self_attn_layernorm.", ".post_attn_norm."}},
       .experts = projections},
      {.families = {"lfm2_moe"}, .experts = numbered},
      {.families = {"laguna"},
       .renamings = {{".mlp.gate.e_score_correction_bias", ".mlp.experts.e_score_correction_bias"},
                     {".shared_experts.", ".shared_expert."}},
       .experts = projections},
      {.families = {"hy_v3"},
       .renamings = {{".mlp.e_score_correction_bias", ".mlp.expert_bias"},
                     {".mlp.gate.", ".mlp.router.gate."},
                     {".shared_experts.", ".shared_mlp."}},
       .experts = projections},
      {.families = {"mimo_v2_flash"},
       .renamings = {{".self_attn.sinks", ".self_attn.attention_sink_bias"}},
       .experts = projections},
      {.families = {"axk1"},
       .renamings = {{".mlp.post_mlp_layernorm.", ".post_mlp_layernorm."}},
       .experts = projections},
      {.families = {"axk2"},
       .renamings = {{".mlp.fc1.", ".W_down."},
                     {".mlp.fc2.", ".W_up."},
                     {".self_attn.q_gate_proj.", ".self_attn.q_b_proj."}},
       .experts = projections}};
}

// Modules have names of their own.
HubTable renamed_mixtures() {
  return {{.families = {"deepseek_v4"},
           .renamings = {{"^lm_head.", "head."},
                         {"^embed_tokens.", "embed."},
                         {"^hc_head.hc_", "hc_head_"},
                         {".compressor.indexer.scorer.weights_proj.", ".indexer.weights_proj."},
                         {".compressor.indexer.q_b_proj.", ".indexer.wq_b."},
                         {".compressor.indexer.", ".indexer.compressor."},
                         {".self_attn.", ".attn."},
                         {".mlp.", ".ffn."},
                         {".input_layernorm.", ".attn_norm."},
                         {".post_attention_layernorm.", ".ffn_norm."},
                         {".attn_hc.", ".hc_attn_"},
                         {".ffn_hc.", ".hc_ffn_"},
                         {".sinks", ".attn_sink"},
                         {".kv_norm.", ".norm."},
                         {".position_bias", ".ape"},
                         {".shared_experts.gate_proj.", ".shared_experts.w1."},
                         {".shared_experts.up_proj.", ".shared_experts.w3."},
                         {".shared_experts.down_proj.", ".shared_experts.w2."},
                         {".gate_proj.", ".wgate."},
                         {".q_a_proj.", ".wq_a."},
                         {".q_b_proj.", ".wq_b."},
                         {".kv_proj.", ".wkv."},
                         {".o_a_proj.", ".wo_a."},
                         {".o_b_proj.", ".wo_b."},
                         {".q_a_norm.", ".q_norm."},
                         {".e_score_correction_bias", ".bias"}},
           .experts = numbered}};
}

HubTable independent_streams() {
  return {{.families = {"hy_v4"},
           .renamings = {{".gate_proj.", ".linear_gate."},
                         {".hc_head.hc_", ".hc_pre.hc_head.hc_head_"},
                         {"^hc_head.hc_", "hc_head.hc_pre.hc_head_"},
                         {".sinks", ".learnable_sink_param"},
                         {".attn_hc.", ".hc_pre.hc_attn_layer.hc_"},
                         {".ffn_hc.", ".hc_pre.hc_mlp_layer.hc_"}}}};
}

// Modules have older names, too.
HubTable older_mixtures() {
  return {
      {.families = {"ernie4_5_moe"},
       .renamings = {{".mlp.gate.moe_statics.", ".mlp.moe_statics."}},
       .experts = projections},
      {.families = {"mixtral", "minimax", "minimax_m2"},
       .renamings = {{".mlp.", ".block_sparse_moe."}},
       .experts = numbered},
      {.families = {"phimoe"},
       .renamings = {{".mlp.", ".block_sparse_moe."}, {".router.weight", ".gate.weight"}},
       .experts = numbered},
      {.families = {"granitemoe", "granitemoeshared", "granitemoehybrid"},
       .renamings = {{".experts.gate_up_proj", ".input_linear.weight"},
                     {".experts.down_proj", ".output_linear.weight"},
                     {".router.weight", ".router.layer.weight"}}},
      {.families = {"nemotron_h"}, .renamings = {{"^model.", "backbone."}}, .experts = projections},
      {.families = {"aria_text"},
       .renamings = {{".experts.gate_up_proj", ".experts.fc1.weight"},
                     {".experts.down_proj", ".experts.fc2.weight"}}},
      {.families = {"kimi_linear"},
       .renamings = {{".mlp.", ".block_sparse_moe."}, {".self_attn.forget_gate.", ".self_attn."}},
       .experts = numbered,
       .cuts = {{".conv1d.", convolutions()}}}};
}

HubTable texts() {
  return {{.families = {"olmo_hybrid"},
           .renamings = {{".input_layernorm.", ".attention_layer_norm."},
                         {".post_attention_layernorm.", ".feedforward_layer_norm."}},
           .cuts = {{".conv1d.", convolutions()}}},
          {.families = {"gte"},
           .renamings = {{"^gte.layers.", "gte.encoder.layer."},
                         {"^layers.", "encoder.layer."},
                         {".self_attn.", ".attention."},
                         {".post_attention_layernorm.", ".attn_ln."},
                         {".post_mlp_layernorm.", ".mlp_ln."},
                         {"lm_head.layer_norm.", "lm_head.norm."}},
           .fusions = {{gate_up(), ".mlp.up_gate_proj."}, {qkv(), ".qkv_proj."}}},
          {.families = {"nomic_bert"},
           .renamings = {{"^nomic_bert.layers.", "nomic_bert.encoder.layers."},
                         {"^layers.", "encoder.layers."},
                         {"embeddings.LayerNorm.", "emb_ln."},
                         {".mlp.gate_proj.", ".mlp.fc12."},
                         {".mlp.up_proj.", ".mlp.fc11."},
                         {".mlp.down_proj.", ".mlp.fc2."},
                         {".post_attention_layernorm.", ".norm1."},
                         {".post_mlp_layernorm.", ".norm2."},
                         {".self_attn.o_proj.", ".attn.out_proj."},
                         {".self_attn.", ".attn."}},
           .fusions = {{qkv(), ".Wqkv."}}},
          {.families = {"altclip"}, .renamings = {{".encoder.layers.", ".encoder.layer."}}},
          {.families = {"jina_embeddings_v3"},
           .renamings = {{"^roberta.layers.", "roberta.encoder.layers."},
                         {"^layers.", "encoder.layers."},
                         {"embeddings.LayerNorm.", "emb_ln."},
                         {".post_attention_layernorm.", ".norm1."},
                         {".post_mlp_layernorm.", ".norm2."},
                         {".self_attn.o_proj.", ".mixer.out_proj."},
                         {".self_attn.", ".mixer."}},
           .fusions = {{qkv(), ".Wqkv."}}},
          {.families = {"esm"},
           .renamings = {{".LayerNorm.weight", ".LayerNorm.gamma"},
                         {".LayerNorm.bias", ".LayerNorm.beta"}}},
          {.families = {"gpt_neox"}, .renamings = {{"^lm_head.", "embed_out."}}}};
}

// Queries, keys, values and outputs as ViT's files call them, and more.
std::vector<Renaming> with_attention_of_vit(std::vector<Renaming> more) {
  const std::vector<Renaming> attention = {{".attention.q_proj", ".attention.attention.query"},
                                           {".attention.k_proj", ".attention.attention.key"},
                                           {".attention.v_proj", ".attention.attention.value"},
                                           {".attention.o_proj", ".attention.output.dense"}};
  more.insert(more.end(), attention.begin(), attention.end());
  return more;
}

HubTable images() {
  const std::vector<Renaming> vit =
      with_attention_of_vit({{"^vit.layers.", "vit.encoder.layer."},
                             {"^ijepa.layers.", "ijepa.encoder.layer."},
                             {"^deit.layers.", "deit.encoder.layer."},
                             {"^layers.", "encoder.layer."},
                             {".decoder_layers.", ".decoder_encoder.layer."},
                             {".mlp.fc1", ".intermediate.dense"},
                             {".mlp.fc2", ".output.dense"}});
  // Files of MSN's classifiers have no module around the encoder.
  std::vector<Renaming> vit_msn = vit;
  vit_msn[0].file = "encoder.layer.";
  return {{.families = {"vit", "deit", "ijepa", "vit_mae"}, .renamings = vit},
          {.families = {"vit_msn"}, .renamings = vit_msn},
          {.families = {"vision-encoder-decoder"},
           .renamings = with_attention_of_vit({{"^encoder.layers.", "encoder.encoder.layer."},
                                               {".mlp.fc1", ".intermediate.dense"},
                                               {".mlp.fc2", ".output.dense"}})},
          {.families = {"dinov2_with_registers"}, .renamings = with_attention_of_vit({})},
          {.families = {"dinov2"},
           .renamings = with_attention_of_vit({{".mlp.down_proj", ".mlp.weights_out"}}),
           .fusions = {{gate_up(), ".mlp.weights_in."}}},
          {.families = {"swin"},
           .renamings = {{".attention.q_proj", ".attention.self.query"},
                         {".attention.k_proj", ".attention.self.key"},
                         {".attention.v_proj", ".attention.self.value"},
                         {".attention.relative_position_bias.", ".attention.self."},
                         {".attention.o_proj", ".attention.output.dense"},
                         {".mlp.fc1", ".intermediate.dense"},
                         {".mlp.fc2", ".output.dense"}}},
          {.families = {"dinov3_vit"}, .renamings = {{"^model.layer.", "layer."}}}};
}

std::vector<Renaming> of_beit(const std::vector<Renaming>& mlp) {
  std::vector<Renaming> beit = with_attention_of_vit(mlp);
  beit.insert(beit.end(), {{"^beit.layers.", "beit.encoder.layer."},
                           {"^layers.", "encoder.layer."},
                           {"shared_position_bias.", "encoder.relative_position_bias."},
                           {"layer.#.relative_position_bias.",
                            "layer.#.attention.attention.relative_position_bias."},
                           {"psp_modules.blocks.#.conv.convolution.", "psp_modules.#.1.conv."},
                           {"psp_modules.blocks.#.conv.normalization.", "psp_modules.#.1.bn."},
                           {"psp_bottleneck.", "bottleneck."},
                           {"fpn.fpn1.conv_transpose1.", "fpn1.0."},
                           {"fpn.fpn1.normalization.", "fpn1.1."},
                           {"fpn.fpn1.conv_transpose2.", "fpn1.3."},
                           {"fpn.fpn2.", "fpn2.0."},
                           {".convolution.", ".conv."},
                           {".normalization.", ".bn."}});
  return beit;
}

// What is no plain stack of layers over images, and over sounds.
HubTable networks() {
  const std::vector<Renaming> mlp = {{".mlp.fc1", ".intermediate.dense"},
                                     {".mlp.fc2", ".output.dense"}};
  std::vector<Renaming> sounds = with_attention_of_vit(mlp);
  sounds.insert(sounds.end(), {{"^audio_spectrogram_transformer.layers.",
                                "audio_spectrogram_transformer.encoder.layer."},
                               {"^vivit.layers.", "vivit.encoder.layer."},
                               {"^layers.", "encoder.layer."}});
  return {{.families = {"beit"}, .renamings = of_beit(mlp)},
          {.families = {"audio-spectrogram-transformer", "vivit"}, .renamings = sounds},
          {.families = {"dpt", "depth_anything"}, .renamings = with_attention_of_vit({})},
          {.families = {"videomae"},
           .renamings = {{".attention.query.bias", ".attention.q_bias"},
                         {".attention.value.bias", ".attention.v_bias"}}},
          {.families = {"segformer"},
           .renamings = {{"stages.#.blocks.#.", "encoder.block.#.#."},
                         {"stages.#.patch_embeddings.", "encoder.patch_embeddings.#."},
                         {"stages.#.layer_norm.", "encoder.layer_norm.#."},
                         {".attention.q_proj", ".attention.self.query"},
                         {".attention.k_proj", ".attention.self.key"},
                         {".attention.v_proj", ".attention.self.value"},
                         {".attention.o_proj", ".attention.output.dense"},
                         {".attention.sequence_reduction.sequence_reduction", ".attention.self.sr"},
                         {".attention.sequence_reduction.", ".attention.self."},
                         {".layernorm_before", ".layer_norm_1"},
                         {".layernorm_after", ".layer_norm_2"},
                         {".mlp.fc", ".mlp.dense"},
                         {".linear_projections.", ".linear_c."}}},
          {.families = {"yolos"},
           .renamings = {{"encoder.interpolation.mid_position_embeddings",
                          "encoder.mid_position_embeddings"}}},
          {.families = {"rt_detr", "rt_detr_v2"},
           .renamings = {{"_attn.o_proj.", "_attn.out_proj."},
                         {"layers.#.mlp.fc", "layers.#.fc"},
                         {"encoder.aifi.#.layers.", "encoder.encoder.#.layers."}}},
          {.families = {"detr"},
           .renamings = {{"^backbone.model.", "backbone.conv_encoder.model."},
                         {"^model.backbone.model.", "model.backbone.conv_encoder.model."},
                         {"_attn.o_proj.", "_attn.out_proj."},
                         {".mlp.fc", ".fc"}}}};
}

// Of images or sounds and text.
HubTable beside_text() {
  return {{.families = {"llava", "llava_next", "llava_next_video", "llava_onevision", "video_llava",
                        "vipllava", "paligemma", "internvl", "aya_vision", "gemma3", "mistral3",
                        "mllama", "qwen2_audio", "voxtral", "audioflamingo3", "musicflamingo",
                        "glmasr"},
           .renamings = {{"^lm_head.", "language_model.lm_head."},
                         {"^model.language_model.", "language_model.model."},
                         {"^model.vision_tower.", "vision_tower."},
                         {"^model.image_tower.", "image_tower."},
                         {"^model.video_tower.", "video_tower."},
                         {"^model.audio_tower.", "audio_tower."},
                         {"^model.vision_model.", "vision_model."},
                         {"^model.image_newline", "image_newline"},
                         {"^model.multi_modal_projector.", "multi_modal_projector."},
                         {"^language_model.", "language_model.model."}}},  // without a head
          {.families = {"qwen2_vl", "qwen2_5_vl"},
           .renamings = {{"^model.visual.", "visual."}, {"^model.language_model.", "model."}}},
          {.families = {"qwen2_5_omni_thinker", "qwen3_omni_moe_thinker"},
           .renamings = {{"^model.visual.", "visual."},
                         {"^model.audio_tower.", "audio_tower."},
                         {"^model.language_model.", "model."}},
           .experts = projections}};
}

}  // namespace

const HubTable& hub_families() {
  static const HubTable all = [] {
    HubTable table;
    for (const HubTable& part :
         {mixtures(), renamed_mixtures(), independent_streams(), older_mixtures(), texts(),
          images(), networks(), beside_text(), recent_hub_families()}) {
      table.insert(table.end(), part.begin(), part.end());
    }
    return table;
  }();
  return all;
}

}  // namespace shardsim::models
