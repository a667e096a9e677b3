#include "hlo/scattered.hpp"

#include <algorithm>

namespace shardsim {
namespace {

constexpr int longest_chain = 1000;  // of operations between a slice and the device's number

}  // namespace

HloCallers& ScatterFinder::callers() {
  if (!callers_) callers_.emplace(module_);
  return *callers_;
}

bool ScatterFinder::is_scattered(HloId id, std::int64_t group_size) {
  const HloComputationId computation = callers().computation_of(id);
  if (group_size <= 1 || module_.computation(computation).root == id) return false;
  if (module_.instruction(id).shape.substr(0, 1) == "(") return false;
  const std::span<const HloId> users = callers().users(computation).of(id);
  return !users.empty() && std::all_of(users.begin(), users.end(), [&](HloId user) {
    return keeps_a_part(user, id, group_size);
  });
}

bool ScatterFinder::keeps_a_part(HloId user, HloId value, std::int64_t group_size) {
  const std::span<const HloId> operands = module_.operands(user);
  if (module_.instruction(user).opcode != "dynamic-slice" || operands[0] != value) return false;
  if (module_.shape(user).element_count() * group_size != module_.shape(value).element_count()) {
    return false;
  }
  return std::any_of(operands.begin() + 1, operands.end(),
                     [&](HloId offset) { return depends_on_device(offset, 0); });
}

bool ScatterFinder::element_depends(HloId tuple, std::size_t index, int depth) {
  if (module_.instruction(tuple).opcode != "tuple") return depends_on_device(tuple, depth);
  const auto operands = module_.operands(tuple);
  return index < operands.size() && depends_on_device(operands[index], depth);
}

bool ScatterFinder::depends_on_device(HloId id, int depth) {
  const auto known = depends_.find(id);
  if (known != depends_.end()) return known->second;
  if (depth > longest_chain) return false;
  depends_[id] = false;  // while it is being found out: what goes around in a circle adds nothing
  const std::string_view opcode = module_.instruction(id).opcode;
  bool answer = opcode == "partition-id" || opcode == "replica-id";
  const auto operands = module_.operands(id);
  if (opcode == "parameter") {
    const auto caller = callers().caller(callers().computation_of(id));
    const std::size_t number = parameter_number(module_, id);
    if (caller && number < module_.operands(*caller).size()) {
      answer = depends_on_device(module_.operands(*caller)[number], depth + 1);
    }
  } else if (opcode == "get-tuple-element" && !operands.empty()) {
    answer = element_depends(operands[0], tuple_index(module_, id), depth + 1);
  } else if (opcode == "fusion") {
    answer = depends_on_device(module_.computation(module_.callee(id, "calls")).root, depth + 1);
  } else if (!answer) {
    answer = std::any_of(operands.begin(), operands.end(),
                         [&](HloId operand) { return depends_on_device(operand, depth + 1); });
  }
  depends_[id] = answer;
  return answer;
}

}  // namespace shardsim
