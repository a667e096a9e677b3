// Which steps of a blueprint are a block of the op graph, and which layers are alike.
//
// A block is what follows a mark. Values that are made before it and read within it or behind it
// are live at its beginning. Layers with consecutive numbers whose steps, what they read of live
// values and what they hand on are the same are one kind: the first of them stands for all.
//
// Example: of 12 layers of an encoder 2, 5, 8 and 11 are read at the end. Layers 0 to 2
// hand on their rows; layer 3 what layer 2 left beside its own, of one value that it was given; 4
// and 5 two of two. So the kinds are {0, 1, 2}, {3}, {4, 5}, {6}, {7, 8}, {9}, {10, 11}.
#pragma once

#include <vector>

#include "workloads/networks/blueprint.hpp"

namespace shardsim::models {

struct BlueprintBlock {
  std::size_t begin = 0;  // steps, the mark first; of the first block there is none
  std::size_t end = 0;
  std::vector<Ref> live{};              // at its beginning
  std::vector<std::int32_t> numbers{};  // of its layers; empty: it is none
  // Of values that are live behind it: which of `live` they are, or -1 - n for what its n-th step
  // makes.
  std::vector<Ref> hands_on{};
};

[[nodiscard]] std::vector<BlueprintBlock> blocks_of(const Blueprint& net);

}  // namespace shardsim::models
