// What every device holds while a per-device program runs: its ops and collectives, evaluated
// exactly on integers. Where they are the numbers of elements, they tell who has what.
//
//   tensor of 5 elements in 2 tiles: device 0 holds {1, 2, 3}, device 1 {4, 5, unknown}
//   after replicate(): both hold {1, 2, 3, 4, 5}
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "array_ops.hpp"
#include "spmd/sharded.hpp"
#include "stablehlo/module.hpp"

namespace shardsim::test {

using OnDevices = std::vector<Array>;  // by device

// The tiles of a tensor whose elements are 1, 2, 3, ... in row-major order.
[[nodiscard]] OnDevices numbered_tiles(const spmd::Shape& shape, const spmd::Tiling& tiling,
                                       int devices);

struct Evaluation {
  std::map<stablehlo::ValueId, OnDevices> values;
  std::vector<double> sent;  // elements by device: rings, and permutes to other devices
};

// Runs the ops of the body that `result` needs, in order: attempts that were given up stay in a
// program until clean_up(), and send nothing. `arguments` are in the order of the function's.
// Throws InputError for ops that compute.
[[nodiscard]] Evaluation evaluate(const stablehlo::Module& program,
                                  const std::vector<OnDevices>& arguments, int devices,
                                  stablehlo::ValueId result);

}  // namespace shardsim::test
