// Who calls a computation and where a value goes: through fusions, calls and loops.
#pragma once

#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "hlo/module.hpp"

namespace shardsim {

// Opcodes whose computations run as part of the program, not once per element.
[[nodiscard]] bool runs_computation(std::string_view opcode);

class HloCallers {
 public:
  explicit HloCallers(const HloModule& module);

  [[nodiscard]] const HloModule& module() const { return *module_; }
  // The last instruction of the text that calls it; nothing for the entry.
  [[nodiscard]] std::optional<HloId> caller(HloComputationId computation) const;
  [[nodiscard]] HloComputationId computation_of(HloId id) const;
  [[nodiscard]] const HloUsers& users(HloComputationId computation);

 private:
  const HloModule* module_;
  std::vector<std::optional<HloId>> callers_;
  std::unordered_map<HloComputationId, HloUsers> users_;
};

// The number of a parameter instruction.
[[nodiscard]] std::size_t parameter_number(const HloModule& module, HloId id);
// index=3 of a get-tuple-element.
[[nodiscard]] std::size_t tuple_index(const HloModule& module, HloId id);

}  // namespace shardsim
