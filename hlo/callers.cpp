#include "hlo/callers.hpp"

#include <algorithm>

#include "base/index.hpp"

namespace shardsim {

namespace {

// The attributes that name what runs as part of the program, not once per element.
std::vector<std::string_view> callee_keys(std::string_view opcode) {
  if (opcode == "fusion" || opcode == "async-start" || opcode == "fusion-start") return {"calls"};
  if (opcode == "call") return {"to_apply"};
  if (opcode == "while") return {"body", "condition"};
  if (opcode == "custom-call") return {"called_computations"};
  if (opcode == "conditional") {
    return {"branch_computations", "true_computation", "false_computation"};
  }
  return {};
}

}  // namespace

HloCallers::HloCallers(const HloModule& module)
    : module_(&module), callers_(module.computations().size()) {
  const auto count = static_cast<HloId>(module.instructions().size());
  for (HloId id = 0; id < count; ++id) {
    for (const std::string_view key : callee_keys(module.instruction(id).opcode)) {
      if (module.attribute(id, key).empty()) continue;
      for (const HloComputationId callee : module.called(id, key)) {
        callers_[at(callee)] = id;
      }
    }
  }
}

std::optional<HloId> HloCallers::caller(HloComputationId computation) const {
  return callers_[at(computation)];
}

HloComputationId HloCallers::computation_of(HloId id) const {
  const auto& all = module_->computations();
  const auto found = std::upper_bound(
      all.begin(), all.end(), id,
      [](HloId wanted, const HloComputation& computation) { return wanted < computation.end; });
  return static_cast<HloComputationId>(found - all.begin());
}

const HloUsers& HloCallers::users(HloComputationId computation) {
  const auto found = users_.find(computation);
  if (found != users_.end()) return found->second;
  return users_.emplace(computation, HloUsers(*module_, module_->computation(computation)))
      .first->second;
}

std::size_t parameter_number(const HloModule& module, HloId id) {
  const std::int64_t number = parse_integer(module.instruction(id).arguments, module.source());
  return number < 0 ? 0 : static_cast<std::size_t>(number);
}

std::size_t tuple_index(const HloModule& module, HloId id) {
  const std::int64_t index = parse_integer(module.attribute(id, "index"), module.source());
  return index < 0 ? 0 : static_cast<std::size_t>(index);
}

std::vector<HloComputationId> branches_of(const HloModule& module, HloId id) {
  std::vector<HloComputationId> branches;
  for (const char* key : {"branch_computations", "true_computation", "false_computation"}) {
    const auto named = module.called(id, key);
    branches.insert(branches.end(), named.begin(), named.end());
  }
  return branches;
}

}  // namespace shardsim
