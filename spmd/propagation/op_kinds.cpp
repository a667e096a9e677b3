#include "spmd/propagation/op_kinds.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "stablehlo/op_rules.hpp"

namespace shardsim::spmd {
namespace {

constexpr auto effects = std::to_array<std::string_view>(
    {"func.call", "func.return", "sdy.return", "sdy.sharding_group", "stablehlo.custom_call",
     "stablehlo.infeed", "stablehlo.outfeed", "stablehlo.recv", "stablehlo.return", "stablehlo.rng",
     "stablehlo.send"});

bool communicates(std::string_view name) {
  constexpr auto collectives = std::to_array<std::string_view>(
      {"stablehlo.all_gather", "stablehlo.all_reduce", "stablehlo.all_to_all",
       "stablehlo.collective_broadcast", "stablehlo.collective_permute",
       "stablehlo.cross-replica-sum", "stablehlo.reduce_scatter"});
  return std::find(collectives.begin(), collectives.end(), name) != collectives.end();
}

}  // namespace

bool is_constant(const stablehlo::Op& op) {
  return op.name == "stablehlo.constant" || op.name == "sdy.constant";
}

bool is_constraint(const stablehlo::Op& op) {
  return op.name == "sdy.sharding_constraint" || op.name == "sdy.reshard";
}

bool is_elementwise(const stablehlo::Function& function, const stablehlo::Op& op) {
  if (is_constraint(op) || op.name == "sdy.propagation_barrier") return true;
  if (op.name == "stablehlo.bitcast_convert") {
    return function.type_of(op.operands.front()).dims == function.type_of(op.results.front()).dims;
  }
  return op.name == "stablehlo.clamp" ||
         (stablehlo::is_elementwise(op.name) && !communicates(op.name));
}

bool is_pure(const stablehlo::Op& op) {
  return op.regions.empty() && !communicates(op.name) &&
         std::find(effects.begin(), effects.end(), op.name) == effects.end();
}

bool is_loop(const stablehlo::Op& op) { return op.name == "stablehlo.while"; }
bool is_branch(const stablehlo::Op& op) {
  return op.name == "stablehlo.case" || op.name == "stablehlo.if";
}
bool is_barrier(const stablehlo::Op& op) { return op.name == "stablehlo.optimization_barrier"; }
bool is_data_flow(const stablehlo::Op& op) {
  return is_loop(op) || is_branch(op) || is_barrier(op);
}
bool is_manual(const stablehlo::Op& op) { return op.name == "sdy.manual_computation"; }

bool is_terminator(const stablehlo::Op& op) {
  return op.name == "func.return" || op.name == "stablehlo.return" || op.name == "sdy.return";
}

bool is_scalar(const stablehlo::TensorType& type) { return type.is_tensor && type.dims.empty(); }

bool is_scalar_expansion(const stablehlo::Function& function, const stablehlo::Op& op) {
  return op.name == "stablehlo.broadcast_in_dim" &&
         is_scalar(function.type_of(op.operands.front()));
}

}  // namespace shardsim::spmd
