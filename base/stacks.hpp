// Whose code launches kernels: what "kernels" of a strategy may name, and of which a machine knows
// what kernels and launches take.
#pragma once

#include <string>
#include <vector>

namespace shardsim {

[[nodiscard]] inline const std::vector<std::string>& stacks() {
  static const std::vector<std::string> names = {"eager", "compiled", "transformer-engine", "xla"};
  return names;
}

}  // namespace shardsim
