// What the layers of one walk share: the batch, the tables of rotary positions, and what another
// stack left for cross attention.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "workloads/eager/eager.hpp"

namespace shardsim::models {

struct Context {
  std::int64_t batch = 1;
  std::int64_t sequence = 1;
  Value encoder{};                  // hidden states that cross attention reads
  Value embedded{};                 // what entered the stack
  Value per_layer{};                // inputs of its layers beside the stream
  double dropout = 0;               // of the stack's rows of distances
  std::int64_t most_distances = 0;  // of these, how many a layer reads at most
  // Computed once, by whom they are first asked for: cos and sin, by the name of their table.
  std::map<std::string, std::pair<Value, Value>> rotary;
  std::map<std::string, Value> shared;  // position biases and the like, by name
};

}  // namespace shardsim::models
