#include "hlo/scattered.hpp"

#include <algorithm>

namespace shardsim {

bool ScatterFinder::is_scattered(HloId id, std::int64_t group_size) {
  const HloModule& module = callers_.module();
  const HloComputationId computation = callers_.computation_of(id);
  if (group_size <= 1 || module.computation(computation).root == id) return false;
  if (module.instruction(id).shape.substr(0, 1) == "(") return false;
  const std::span<const HloId> users = callers_.users(computation).of(id);
  return !users.empty() && std::all_of(users.begin(), users.end(), [&](HloId user) {
    return keeps_a_part(user, id, group_size);
  });
}

bool ScatterFinder::keeps_a_part(HloId user, HloId value, std::int64_t group_size) {
  const HloModule& module = callers_.module();
  const std::span<const HloId> operands = module.operands(user);
  if (module.instruction(user).opcode != "dynamic-slice" || operands[0] != value) return false;
  if (module.shape(user).element_count() * group_size != module.shape(value).element_count()) {
    return false;
  }
  return std::any_of(operands.begin() + 1, operands.end(),
                     [&](HloId offset) { return depends_on_device(offset); });
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
