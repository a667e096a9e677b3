// The tensors of a model's files on the hub, where they have other names or shapes than the module
// tree of transformers: experts one by one, gate and up as one matrix, prefixes of older versions.
//
//   model.layers.3.mlp.experts.gate_up_proj [64, 2f, h]          of OLMoE is in files
//   model.layers.3.mlp.experts.{0-63}.gate_proj.weight [f, h]
//   model.layers.3.mlp.experts.{0-63}.up_proj.weight   [f, h]
//
// Buffers of the checkpoint are among them; tied tensors lie there once. What files hold beyond the
// model, layers of multi-token prediction and scales of quantized blocks, is not.
//
// Source: transformers 5.23.0, conversion_mapping.py, run backwards.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "workloads/models/walk.hpp"

namespace shardsim::models {

struct HubTensor {
  std::string name;
  Shape shape;
  DType dtype = DType::bf16;
  std::int64_t experts = 0;  // of a family's rows: one for each, whose number is the name's "*"
  std::int64_t first = 0;    // of these numbers
};

// Whether the family's files differ from its module tree.
[[nodiscard]] bool has_hub_names(const std::string& family);
// A parameter's name in files; of experts that lie there one by one the stacked name.
[[nodiscard]] std::string hub_module(const std::string& family, std::string name);
// How files call the matrices of one expert; empty: they stay stacked.
struct ExpertFiles {
  std::string_view gate, up, down;
};
[[nodiscard]] ExpertFiles expert_files(const std::string& family);
// Of every family: where files do not differ, parameters and buffers as they are. Tensors that each
// expert has are one row; hub_tensors gives each its own.
[[nodiscard]] std::vector<HubTensor> hub_rows(const std::string& family, const ModelCounts& counts);
[[nodiscard]] std::vector<HubTensor> hub_tensors(const std::string& family,
                                                 const ModelCounts& counts);

}  // namespace shardsim::models
