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

struct HubFamily {
  std::vector<std::string_view> families;
  std::vector<Renaming> renamings{};
  ExpertFiles experts{};
  std::string_view fused_gate{};  // gate_proj and up_proj of an MLP as one, under this name
};

constexpr ExpertFiles projections{"gate_proj", "up_proj", "down_proj"};
constexpr ExpertFiles numbered{"w1", "w3", "w2"};

const std::vector<HubFamily>& hub_families() {
  static const std::vector<Renaming> vit = {{"vit.layers.", "vit.encoder.layer."},
                                            {"deit.layers.", "deit.encoder.layer."},
                                            {".attention.q_proj", ".attention.attention.query"},
                                            {".attention.k_proj", ".attention.attention.key"},
                                            {".attention.v_proj", ".attention.attention.value"},
                                            {".attention.o_proj", ".attention.output.dense"},
                                            {".mlp.fc1", ".intermediate.dense"},
                                            {".mlp.fc2", ".output.dense"}};
  static const std::vector<HubFamily> table = {
      {.families = {"deepseek_v2", "deepseek_v3", "dots1", "flex_olmo", "glm4_moe",
                    "hunyuan_v1_moe", "olmoe", "qwen2_moe", "qwen3_moe", "qwen3_next", "solar_open",
                    "jamba"},
       .experts = projections},
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
      {.families = {"gpt_neox"}, .renamings = {{"^lm_head.", "embed_out."}}},
      {.families = {"vit", "deit"}, .renamings = vit},
      {.families = {"dinov2"},
       .renamings = {{".attention.q_proj", ".attention.attention.query"},
                     {".attention.k_proj", ".attention.attention.key"},
                     {".attention.v_proj", ".attention.attention.value"},
                     {".attention.o_proj", ".attention.output.dense"},
                     {".mlp.down_proj", ".mlp.weights_out"}},
       .fused_gate = "weights_in"},
      {.families = {"swin"},
       .renamings = {{".attention.q_proj", ".attention.self.query"},
                     {".attention.k_proj", ".attention.self.key"},
                     {".attention.v_proj", ".attention.self.value"},
                     {".attention.relative_position_bias.", ".attention.self."},
                     {".attention.o_proj", ".attention.output.dense"},
                     {".mlp.fc1", ".intermediate.dense"},
                     {".mlp.fc2", ".output.dense"}}},
      {.families = {"llava", "llava_next", "llava_onevision", "vipllava", "paligemma", "internvl",
                    "aya_vision", "gemma3", "mistral3"},
       .renamings = {{"^lm_head.", "language_model.lm_head."},
                     {"^model.language_model.", "language_model.model."},
                     {"^model.vision_tower.", "vision_tower."},
                     {"^model.image_newline", "image_newline"},
                     {"^model.multi_modal_projector.", "multi_modal_projector."}}},
      {.families = {"dinov3_vit"}, .renamings = {{"^model.layer.", "layer."}}},
      {.families = {"qwen2_vl", "qwen2_5_vl"},
       .renamings = {{"^model.visual.", "visual."}, {"^model.language_model.", "model."}}},
      {.families = {"qwen3_5_text"}, .renamings = {{"^model.", "model.language_model."}}},
      {.families = {"qwen3_5_moe_text"},
       .renamings = {{"^model.", "model.language_model."}},
       .experts = projections}};
  return table;
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

// Under the gate's name both, [2f, ...]; nothing under up's.
bool add_fused(std::vector<HubTensor>& tensors, std::string_view fused, HubTensor tensor) {
  constexpr std::string_view gate = ".mlp.gate_proj.";
  if (tensor.name.find(".mlp.up_proj.") != std::string::npos) return true;
  const std::size_t at = tensor.name.find(gate);
  if (at == std::string::npos) return false;
  tensor.name.replace(at, gate.size(), fmt::format(".mlp.{}.", fused));
  tensor.shape[0] *= 2;
  tensors.push_back(std::move(tensor));
  return true;
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
    HubTensor tensor{renamed(names, parameter.name), parameter.shape, parameter.dtype};
    if (parameter.experts > 0 && !names.experts.down.empty() && tensor.shape.size() == 3) {
      add_experts(tensors, names.experts, tensor);
    } else if (names.fused_gate.empty() || !add_fused(tensors, names.fused_gate, tensor)) {
      tensors.push_back(std::move(tensor));
    }
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
