// What passes between the stages of a pipeline while a program is written.
#pragma once

#include <compare>
#include <cstdint>
#include <utility>
#include <vector>

#include "strategies/partition/spmd.hpp"
#include "workloads/graph/op_graph.hpp"

namespace shardsim {

// What goes into a stage, of a microbatch: from the stage before in forward, behind in backward.
struct Inlet {
  std::int16_t stage = 0;
  std::int32_t microbatch = 0;
  bool is_gradient = false;
  auto operator<=>(const Inlet&) const = default;
};

// Between two stages, as a message crosses it.
struct Border {
  bool is_gradient = false;
  BlockInstance from, to;
  std::int16_t receiver = 0;                             // stage
  std::int32_t peer = 0;                                 // program
  std::vector<std::pair<ValueId, ValueId>> values = {};  // there and here; no_value: stays
};

}  // namespace shardsim
