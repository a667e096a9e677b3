#include "spmd/ops/trial.hpp"

#include <algorithm>

#include "base/index.hpp"

namespace shardsim::spmd {
namespace {

using stablehlo::Function;
using stablehlo::Module;

Module with_empty_function() {
  Module module;
  module.functions.emplace_back().regions.emplace_back();
  return module;
}

std::int64_t bytes_of(const TensorType& type) {
  const std::int64_t bits = type.dtype ? bits_of(*type.dtype) : 32;
  return type.elements() * std::max<std::int64_t>(bits / 8, 1);
}

std::int64_t collective_bytes(const Function& function, const Op& op) {
  const std::int64_t result = bytes_of(function.type_of(op.results.front()));
  if (op.name == "stablehlo.all_reduce") return 2 * result;
  if (op.name == "stablehlo.collective_permute") return result;
  std::int64_t group = 1;
  if (op.name == "stablehlo.all_gather") {
    group = function.type_of(op.results.front()).elements() /
            std::max<std::int64_t>(function.type_of(op.operands.front()).elements(), 1);
  } else {
    group = find(op.attributes, "split_count")->integer;
  }
  return result * (group - 1) / group;
}

bool is_collective(const Op& op) {
  return op.name == "stablehlo.all_reduce" || op.name == "stablehlo.all_gather" ||
         op.name == "stablehlo.all_to_all" || op.name == "stablehlo.collective_permute";
}

// Ops that write into an operand need no more memory than their operands.
std::int64_t memory_bytes(const Function& function, const Op& op) {
  std::int64_t bytes = 0;
  for (const ValueId operand : op.operands) bytes += bytes_of(function.type_of(operand));
  if (op.name == "stablehlo.all_reduce" || op.name == "stablehlo.scatter") return bytes;
  for (const ValueId result : op.results) bytes += bytes_of(function.type_of(result));
  return bytes;
}

}  // namespace

Trial::Trial(int devices)
    : module_(with_empty_function()), builder_(module_), context_(builder_, devices) {}

Sharded Trial::argument(const Sharded& like) {
  const ValueId value = builder_.add_argument(like.context->builder().type(like.value), "");
  return {value, like.shape, like.tiling, &context_};
}

TrialCost Trial::cost(std::string_view op_name, const std::vector<Sharded>& results) const {
  const Function& function = module_.functions.front();
  std::vector<bool> needed(function.values.size(), false);
  for (const Sharded& result : results) needed[at(result.value)] = true;
  std::int64_t memory = 0;
  std::int64_t communication = 0;
  const auto& ops = function.body().ops;
  for (auto id = ops.rbegin(); id != ops.rend(); ++id) {
    const Op& op = function.op(*id);
    const bool is_needed = std::any_of(op.results.begin(), op.results.end(),
                                       [&](ValueId value) { return needed[at(value)]; });
    if (!is_needed) continue;
    for (const ValueId operand : op.operands) needed[at(operand)] = true;
    if (op.name != op_name && !is_collective(op)) continue;
    memory = std::max(memory, memory_bytes(function, op));
    if (is_collective(op)) communication += collective_bytes(function, op);
  }
  if (memory == 0) return {};
  return {memory, communication};
}

}  // namespace shardsim::spmd
