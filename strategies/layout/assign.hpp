// What the strategy says before anything is propagated: the shardings of parameters, of their
// gradients and optimizer state, of inputs, and of the activations that it pins.
//
// A parameter has up to five shardings over its stored dimensions:
//   stored     between steps
//   compute    as ops read it: stored without the axes that split the batch or the sequence (those
//              carry different data, so the parameter is gathered over them before use: ZeRO-3)
//   look_up    as look-ups read it: compute, or with "gather_embedding": false stored
//   gradient   as its gradient is kept
//   optimizer  as master copy and moments are kept
//
// Example: q_proj.weight [4096, 4096] under fsdp+tp on fsdp=4, model=2
//   stored [model+fsdp, -]   compute [model, -]   gradient and optimizer [model+fsdp, -]
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sharding/sharding.hpp"
#include "strategies/rules/rule_system.hpp"
#include "strategies/strategy.hpp"
#include "workloads/graph/op_graph.hpp"

namespace shardsim {

struct ParameterLayout {
  TensorId tensor = no_tensor;
  std::vector<std::int64_t> shape;    // stored
  std::vector<std::int32_t> numbers;  // of the layers that have it (Block::numbers)
  Sharding stored;
  Sharding compute;
  Sharding look_up;
  Sharding gradient;
  Sharding optimizer;
  std::string assigned_by;              // "rule 2: .*kernel", "fsdp: dimension 0 over fsdp", ...
  std::optional<std::size_t> rule;      // index into Layout::rules
  std::string reason;                   // why it is less sharded than the rule asked for
  std::optional<LeafSpec> from_system;  // what a rule system answered

  [[nodiscard]] std::int64_t instances() const { return static_cast<std::int64_t>(numbers.size()); }
  friend bool operator==(const ParameterLayout&, const ParameterLayout&) = default;
};

struct Layout {
  std::vector<ParameterLayout> parameters;  // in the order of parameters(workload)
  std::map<TensorId, Sharding> pinned;      // inputs, constants, activations; tensor dims
  std::map<TensorId, Sharding> entering;    // inputs that do not enter as they are pinned
  std::vector<RuleUse> rules;               // for parameters
  std::vector<LeafSpec> leaves;             // of tree_leaves(workload), where it has a view
  std::map<TensorId, Sharding> leaving;     // outputs that do not leave as they are made
  DType stored_dtype = DType::bf16;         // of parameters between steps
  AxisList data_axes;                       // split the batch or the sequence
  AxisList ends_axes = {};  // split examples further, before them, where all microbatches are
                            // together (shifting_stages.hpp)
  AxisList sequence_axes;   // of these: the sequence
  AxisList model_axes;      // tensor parallelism splits heads, width, vocabulary
  bool sequence_parallel = false;     // over these, between blocks
  bool saves_sharded_inputs = false;  // of products (strategy.hpp)
  InputGradients input_gradients = InputGradients::together;
  ContextLayout context{};  // of a sequence that is split over sequence_axes
  std::optional<ExpertLayout> experts = {};
  int zero_stage = 0;  // that shards optimizer state and gradients further
  AxisList idle_axes;  // used by nothing
  std::vector<std::string> warnings;
  friend bool operator==(const Layout&, const Layout&) = default;
};

// Adds `axes` as the most minor split of the dimension that the strategy shards. Answers the
// dimension, or nothing when the parameter stays as it is: no dimension is fit, or `axes` split it
// already.
std::optional<std::size_t> add_shards(Sharding& sharding, const std::vector<std::int64_t>& shape,
                                      const AxisList& axes, ShardDimension rule);

// `stored_dtype`: of the parameters between steps. Throws InputError: a rule that matches nothing,
// a spec longer than the rank, a rule that tells instances of a repeated block apart.
[[nodiscard]] Layout assign(const Workload& workload, const Mesh& mesh, const Strategy& strategy,
                            DType stored_dtype);

}  // namespace shardsim
