#include "hlo/scattered.hpp"

#include <algorithm>

namespace shardsim {
namespace {

constexpr int longest_way = 64;  // of uses between an all-reduce and its slice

bool passes_on(std::string_view opcode) {
  return opcode == "bitcast" || opcode == "copy" || opcode == "reshape" ||
         opcode == "get-tuple-element" || opcode == "all-reduce-done" || opcode == "async-done" ||
         opcode == "tuple";
}

}  // namespace

bool ScatterFinder::is_scattered(HloId id, std::int64_t group_size) {
  return group_size > 1 && only_sliced(id, group_size, 0);
}

bool ScatterFinder::only_sliced(HloId value, std::int64_t group_size, int depth) {
  if (depth > longest_way) return false;
  const HloModule& module = callers_.module();
  const HloComputationId computation = callers_.computation_of(value);
  const std::span<const HloId> users = callers_.users(computation).of(value);
  if (module.computation(computation).root == value) {
    const auto caller = callers_.caller(computation);
    const bool in_fusion = caller && module.instruction(*caller).opcode == "fusion";
    return in_fusion && users.empty() && only_sliced(*caller, group_size, depth + 1);
  }
  return !users.empty() && std::all_of(users.begin(), users.end(), [&](HloId user) {
    return use_slices(user, value, group_size, depth);
  });
}

bool ScatterFinder::use_slices(HloId user, HloId value, std::int64_t group_size, int depth) {
  const HloModule& module = callers_.module();
  const std::string_view opcode = module.instruction(user).opcode;
  const std::span<const HloId> operands = module.operands(user);
  if (opcode == "dynamic-slice") {
    if (operands[0] != value) return false;
    if (module.shape(user).element_count() * group_size != module.shape(value).element_count()) {
      return false;
    }
    return std::any_of(operands.begin() + 1, operands.end(),
                       [&](HloId offset) { return depends_on_device(offset); });
  }
  if (passes_on(opcode)) return only_sliced(user, group_size, depth + 1);
  if (opcode != "fusion") return false;
  const HloComputationId callee = module.callee(user, "calls");
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (operands[i] != value) continue;
    const auto parameter = callers_.parameter(callee, i);
    if (!parameter || !only_sliced(*parameter, group_size, depth + 1)) return false;
  }
  return true;
}

bool ScatterFinder::element_depends(HloId tuple, std::size_t index) {
  const HloModule& module = callers_.module();
  if (module.instruction(tuple).opcode != "tuple") return depends_on_device(tuple);
  const auto operands = module.operands(tuple);
  return index < operands.size() && depends_on_device(operands[index]);
}

bool ScatterFinder::depends_on_device(HloId id) {
  const auto known = depends_.find(id);
  if (known != depends_.end()) return known->second;
  depends_[id] = false;  // while it is being found out: what goes around in a circle adds nothing
  const HloModule& module = callers_.module();
  const std::string_view opcode = module.instruction(id).opcode;
  bool answer = opcode == "partition-id" || opcode == "replica-id";
  const auto operands = module.operands(id);
  if (opcode == "parameter") {
    const auto caller = callers_.caller(callers_.computation_of(id));
    const std::size_t number = parameter_number(module, id);
    if (caller && number < module.operands(*caller).size()) {
      answer = depends_on_device(module.operands(*caller)[number]);
    }
  } else if (opcode == "get-tuple-element" && !operands.empty()) {
    answer = element_depends(operands[0], tuple_index(module, id));
  } else if (opcode == "fusion") {
    answer = depends_on_device(module.computation(module.callee(id, "calls")).root);
  } else if (!answer) {
    answer = std::any_of(operands.begin(), operands.end(),
                         [&](HloId operand) { return depends_on_device(operand); });
  }
  depends_[id] = answer;
  return answer;
}

}  // namespace shardsim
