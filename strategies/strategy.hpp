// A strategy: what gives every parameter, gradient, optimizer state, input and chosen activation
// its sharding. Named strategies are recipes over the mesh's axes:
//
//   replicate, dp   parameters whole everywhere; batch over the data axes
//   fsdp            ZeRO-3: parameters, gradients and optimizer state sharded over the shard axis,
//                   gathered unit by unit in forward and again in backward
//   hsdp            fsdp over the shard axis, replicas over the replica axis
//   tp              Megatron: column and row splits over the model axis
//   fsdp+tp         both
//   rules           regular expression -> PartitionSpec, first match wins
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json_reader.hpp"
#include "plan/mesh.hpp"

namespace shardsim {

// A PartitionSpec entry per dimension: the axes it is split over, major to minor.
using SpecEntry = std::vector<std::string>;
struct Rule {
  std::string pattern;           // regular expression (search), as match_partition_rules
  std::vector<SpecEntry> spec;   // shorter than the rank: the rest is whole
  Place place;
};

struct StrategyOptions {
  std::string name = "replicate";
  int zero_stage = 0;             // of dp and tp: 1 shards optimizer state over the data axes, 2
                                  // gradients too; fsdp and hsdp are stage 3
  std::vector<std::string> batch_axes;     // defaults by the strategy
  std::vector<std::string> sequence_axes;  // inputs' sequence dimension; default none
  std::string shard_axis;         // fsdp; default "fsdp" if the mesh has it, else the only data axis
  std::string model_axis;         // tp; default "model"
  bool sequence_parallel = false;  // tp: residual stream split along the sequence over model_axis
  bool reshard_after_forward = true;       // fsdp: repeated blocks are gathered again in backward
  bool reshard_root_after_forward = true;  // the same for what is outside repeated blocks; FSDP2's
                                           // own default is false
  bool gather_units = true;        // one call per unit (FSDP2); false: one per tensor (XLA)
  int prefetch = 1;                // units whose gather may be in flight before they are needed
  std::vector<Rule> rules;         // parameters
  std::vector<Rule> activations;   // activations by name
};

// Reads "fsdp" or {"name": "fsdp", ...}. Throws InputError: unknown strategy, key, axis.
[[nodiscard]] StrategyOptions read_strategy(const JsonReader& json, const Mesh& mesh);
[[nodiscard]] Json strategy_to_json(const StrategyOptions& options);
[[nodiscard]] std::vector<std::string> strategy_names();

}  // namespace shardsim
