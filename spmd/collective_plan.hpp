// One collective of a partitioned program as the plan tells it, and the devices that it runs on.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "stablehlo/module.hpp"

namespace shardsim::spmd {

// The largest mesh of a program, and the place in it of each of the program's device numbers
// (empty: the number itself); without one, a single device.
struct ProgramDevices {
  Mesh mesh;
  std::string name;  // of the mesh in the program
  std::vector<std::int64_t> positions;
};
[[nodiscard]] ProgramDevices devices_of(const stablehlo::Module& module);

[[nodiscard]] bool is_collective(const stablehlo::Op& op);
// Groups as axes of the mesh where they are a product of them. `positions` as above. Throws
// InputError.
[[nodiscard]] Collective collective_of(const stablehlo::Module& module,
                                       const stablehlo::Function& function, const stablehlo::Op& op,
                                       const Mesh& mesh,
                                       const std::vector<std::int64_t>& positions);

}  // namespace shardsim::spmd
