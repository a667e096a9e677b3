// A function as propagation walks it: slots that hold a sharding each, and steps that relate them.
//
//   %0 = dot %a, %b          slots a, b, 0          step with the dot's rule: a, b -> 0
//   %1:2 = while(%i = %a, ...)
//                            one slot for result, condition's and body's argument; step "edge" with
//                            the identity rule: a and what the body returns -> slot
//   manual_computation       an edge for each argument (operand -> argument) and each result; its
//                            manual axes stay outside: they are put before the axes of the inner
//                            sharding where the edge meets the outer one
//   func.return              result slots, filled before and after each pass
//
// Steps are in the order in which Shardy visits ops; `wakes` of a slot says which steps to visit
// when its sharding changes, in the order in which Shardy pushes them.
// Source: openxla/shardy basic_propagation.cc, sdy.data_flow_edge in ir/ops.td.
#pragma once

#include <optional>
#include <vector>

#include "spmd/propagation/propagation_directions.hpp"
#include "spmd/tiling/tensor_sharding.hpp"
#include "stablehlo/module.hpp"

namespace shardsim::spmd {

using SlotId = int;
using StepId = int;
inline constexpr SlotId no_slot = -1;

struct Slot {
  std::optional<TensorSharding> sharding;
  std::vector<int> priorities;  // that the user gave, by dimension; empty: 0 everywhere
  std::vector<StepId> wakes;
  std::vector<SlotId> group;  // of its sharding group, itself included
  std::uint64_t changed = 0;  // when, in steps visited
};

struct Step {
  std::vector<SlotId> operands;
  std::vector<SlotId> results;
  stablehlo::FactorRule rule;
  Directions directions;
  bool elementwise = false;
  // Of an edge of a manual computation: what is known outside, and which axes are manual. An edge
  // of an argument sees its sharding with them, that of a result without.
  std::optional<TensorSharding> manual_outside;
  std::vector<int> manual_axes;
  bool is_argument_edge = false;
  std::uint64_t visited = 0;
};

struct PropagationGraph {
  std::vector<Slot> slots;
  std::vector<Step> steps;
  std::vector<SlotId> slot_of;         // by value; no_slot for what is no tensor
  std::vector<SlotId> result_slots;    // of the function
  std::vector<Step> function_results;  // returned value -> result slot
};

// Throws InputError: shardings that do not fit, see Meshes.
[[nodiscard]] PropagationGraph build_graph(const stablehlo::Module& module,
                                           const stablehlo::Function& function,
                                           const Meshes& meshes);

}  // namespace shardsim::spmd
