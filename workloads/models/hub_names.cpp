#include "workloads/models/hub_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace shardsim::models {
namespace {

// A part of a name; "^" in front: of its beginning alone.
struct Renaming {
  std::string_view module;
  std::string_view file;
};

// Modules of as many rows each that lie in files as one, in this order.
struct Fusion {
  std::vector<std::string_view> modules;
  std::string_view file;
};

// A module whose rows lie in files as parts of as many rows each.
struct Cut {
  std::string_view module;
  std::vector<std::string_view> files;
};

struct HubFamily {
  std::vector<std::string_view> families;
  std::vector<Renaming> renamings{};
  ExpertFiles experts{};
  std::vector<Fusion> fusions{};
  std::vector<Cut> cuts{};
};

constexpr ExpertFiles projections{"gate_proj", "up_proj", "down_proj"};
constexpr ExpertFiles numbered{"w1", "w3", "w2"};

using Words = std::vector<std::string_view>;
using HubTable = std::vector<HubFamily>;

Words gate_up() { return {".mlp.gate_proj.", ".mlp.up_proj."}; }
Words qkv() { return {".q_proj.", ".k_proj.", ".v_proj."}; }
Words convolutions() { return {".q_conv1d.", ".k_conv1d.", ".v_conv1d."}; }

// Experts lie one by one.
HubTable mixtures() {
  return {
      {.families = {"afmoe",       "cohere2_moe",  "deepseek_v2",
                    "deepseek_v3", "deepseek_v32", "dots1",
                    "flex_olmo",   "glm4_moe",     "glm4_moe_lite",
                    "glm4v_moe",   "glm_moe_dsa",  "hunyuan_v1_moe",
                    "jamba",       "mellum",       "olmoe",
                    "qwen2_moe",   "qwen3_5_moe",  "qwen3_5_moe_text",
                    "qwen3_moe",   "qwen3_next",   "solar_open"},
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
       .experts = projections}};
}

// Modules have older names, too.
HubTable older_mixtures() {
  return {
      {.families = {"ernie4_5_moe"},
       .renamings = {{".mlp.gate.moe_statics.", ".mlp.moe_statics."}},
       .experts = projections},
      {.families = {"mixtral", "minimax_m2"},
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

// Of images or sounds and text.
HubTable beside_text() {
  return {{.families = {"llava", "llava_next", "llava_next_video", "llava_onevision", "video_llava",
                        "vipllava", "paligemma", "internvl", "aya_vision", "gemma3", "mistral3",
                        "mllama", "qwen2_audio", "voxtral"},
           .renamings = {{"^lm_head.", "language_model.lm_head."},
                         {"^model.language_model.", "language_model.model."},
                         {"^model.vision_tower.", "vision_tower."},
                         {"^model.image_tower.", "image_tower."},
                         {"^model.video_tower.", "video_tower."},
                         {"^model.audio_tower.", "audio_tower."},
                         {"^model.vision_model.", "vision_model."},
                         {"^model.image_newline", "image_newline"},
                         {"^model.multi_modal_projector.", "multi_modal_projector."}}},
          {.families = {"qwen2_vl", "qwen2_5_vl"},
           .renamings = {{"^model.visual.", "visual."}, {"^model.language_model.", "model."}}},
          {.families = {"qwen2_5_omni_thinker", "qwen3_omni_moe_thinker"},
           .renamings = {{"^model.visual.", "visual."},
                         {"^model.audio_tower.", "audio_tower."},
                         {"^model.language_model.", "model."}},
           .experts = projections}};
}

const HubTable& hub_families() {
  static const HubTable all = [] {
    HubTable table;
    for (const HubTable& part : {mixtures(), older_mixtures(), texts(), images(), beside_text()}) {
      table.insert(table.end(), part.begin(), part.end());
    }
    return table;
  }();
  return all;
}

const HubFamily* find_family(const std::string& family) {
  for (const HubFamily& known : hub_families()) {
    if (std::find(known.families.begin(), known.families.end(), family) != known.families.end()) {
      return &known;
    }
  }
  return nullptr;
}

// The first of the renamings that match at the beginning, and all others wherever they match.
std::string renamed(const HubFamily& family, std::string name) {
  bool begun = false;
  for (const Renaming& renaming : family.renamings) {
    if (renaming.module.front() == '^') {
      const std::string_view begin = renaming.module.substr(1);
      if (begun || !name.starts_with(begin)) continue;
      name.replace(0, begin.size(), renaming.file);
      begun = true;
    } else if (const std::size_t at = name.find(renaming.module); at != std::string::npos) {
      name.replace(at, renaming.module.size(), renaming.file);
    }
  }
  return name;
}

// [E, 2f, h] is E matrices of gate and of up, [E, out, in] one of each expert: a row for all.
void add_experts(std::vector<HubTensor>& tensors, const ExpertFiles& names,
                 const HubTensor& stacked) {
  const std::size_t dot = stacked.name.rfind('.');
  const std::string experts = stacked.name.substr(0, dot);
  const std::string what = stacked.name.substr(dot + 1);
  const auto add = [&](std::string_view name, std::int64_t out) {
    tensors.push_back({fmt::format("{}.*.{}.weight", experts, name),
                       {out, stacked.shape[2]},
                       stacked.dtype,
                       stacked.shape[0]});
  };
  if (what == "gate_up_proj") {
    add(names.gate, stacked.shape[1] / 2);
    add(names.up, stacked.shape[1] / 2);
  } else {
    add(what == "up_proj" ? names.up : names.down, stacked.shape[1]);
  }
}

// In place of the first module all of a fusion, [n * rows, ...]; nothing in place of the others.
bool add_fused(std::vector<HubTensor>& tensors, const Fusion& fusion, HubTensor tensor) {
  for (std::size_t i = 0; i < fusion.modules.size(); ++i) {
    const std::size_t at = tensor.name.find(fusion.modules[i]);
    if (at == std::string::npos) continue;
    if (i > 0) return true;
    tensor.name.replace(at, fusion.modules[i].size(), fusion.file);
    tensor.shape[0] *= static_cast<std::int64_t>(fusion.modules.size());
    tensors.push_back(std::move(tensor));
    return true;
  }
  return false;
}

bool add_cut(std::vector<HubTensor>& tensors, const Cut& cut, HubTensor tensor) {
  const std::size_t at = tensor.name.find(cut.module);
  if (at == std::string::npos) return false;
  const std::string name = tensor.name;
  tensor.shape[0] /= static_cast<std::int64_t>(cut.files.size());
  for (const std::string_view file : cut.files) {
    tensor.name = std::string(name).replace(at, cut.module.size(), file);
    tensors.push_back(tensor);
  }
  return true;
}

// One by one where they are experts, together or in parts where files have them so.
void add_tensor(std::vector<HubTensor>& tensors, const HubFamily& names, HubTensor tensor,
                bool of_experts) {
  if (of_experts && !names.experts.down.empty() && tensor.shape.size() == 3) {
    add_experts(tensors, names.experts, tensor);
    return;
  }
  for (const Fusion& fusion : names.fusions) {
    if (add_fused(tensors, fusion, tensor)) return;
  }
  for (const Cut& cut : names.cuts) {
    if (add_cut(tensors, cut, tensor)) return;
  }
  tensors.push_back(std::move(tensor));
}

}  // namespace

bool has_hub_names(const std::string& family) { return find_family(family) != nullptr; }

std::string hub_module(const std::string& family, std::string name) {
  const HubFamily* found = find_family(family);
  return found == nullptr ? name : renamed(*found, std::move(name));
}

ExpertFiles expert_files(const std::string& family) {
  const HubFamily* found = find_family(family);
  return found == nullptr ? ExpertFiles{} : found->experts;
}

std::vector<HubTensor> hub_rows(const std::string& family, const ModelCounts& counts) {
  static const HubFamily as_they_are{};
  const HubFamily* found = find_family(family);
  const HubFamily& names = found == nullptr ? as_they_are : *found;
  std::vector<HubTensor> tensors;
  for (const Parameter& parameter : counts.parameters) {
    add_tensor(tensors, names, {renamed(names, parameter.name), parameter.shape, parameter.dtype},
               parameter.experts > 0);
  }
  for (const Buffer& buffer : counts.buffers) {
    tensors.push_back({renamed(names, buffer.name), buffer.shape, buffer.dtype});
  }
  return tensors;
}

std::vector<HubTensor> hub_tensors(const std::string& family, const ModelCounts& counts) {
  std::vector<HubTensor> tensors;
  for (HubTensor& row : hub_rows(family, counts)) {
    if (row.experts == 0) {
      tensors.push_back(std::move(row));
      continue;
    }
    const std::size_t star = row.name.find('*');
    for (std::int64_t i = 0; i < row.experts; ++i) {
      tensors.push_back(
          {fmt::format("{}{}{}", row.name.substr(0, star), i, row.name.substr(star + 1)), row.shape,
           row.dtype});
    }
  }
  return tensors;
}

}  // namespace shardsim::models
