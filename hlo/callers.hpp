// Who calls a computation and where a value goes: through fusions, calls and loops.
#pragma once

#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "hlo/module.hpp"

namespace shardsim {

class HloCallers {
 public:
  explicit HloCallers(const HloModule& module);

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
// Of a conditional, by number, or for true and false.
[[nodiscard]] std::vector<HloComputationId> branches_of(const HloModule& module, HloId id);
// index=3 of a get-tuple-element.
[[nodiscard]] std::size_t tuple_index(const HloModule& module, HloId id);

}  // namespace shardsim
