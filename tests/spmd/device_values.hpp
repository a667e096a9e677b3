// What every device holds while a per-device program runs: its ops that move data, evaluated on
// integers that name elements.
//
//   tensor of 5 elements in 2 tiles: device 0 holds {1, 2, 3}, device 1 {4, 5, unknown}
//   after replicate(): both hold {1, 2, 3, 4, 5}
//
// `unknown` is padding that nobody may rely on: it survives moves, and any sum with it is unknown.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "spmd/sharded.hpp"
#include "stablehlo/module.hpp"

namespace shardsim::test {

inline constexpr std::int64_t unknown = -1;

struct Array {
  spmd::Shape shape;
  std::vector<std::int64_t> elements;  // row-major
};

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
