// Gradients of a parameter that two stages have a copy of, added up before the optimizer's step: an
// all-reduce between the devices at the same place of both stages, which the programs of both run
// together.
//
//   mesh pp=4, tp=2; the first stage has devices 0 and 1, the last 6 and 7: groups {0 6} {1 7}
//
// Of what a device keeps of the gradient: under ZeRO the shard. (Megatron sends the whole buffer.)
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "strategies/partition/spmd_builder.hpp"

namespace shardsim {

class SharedGradients {
 public:
  // `stages_axis`: of the mesh; empty: nothing is shared.
  SharedGradients(const Workload& workload, const Mesh& mesh, const std::string& stages_axis);

  [[nodiscard]] bool is_shared(TensorId parameter) const { return shared_.contains(parameter); }
  // The gradient with that of the other stage's copy: in place, in `items`.
  ValueId add_up(SpmdBuilder& builder, TensorId parameter, ValueId gradient,
                 std::vector<Item>& items) const;

 private:
  std::set<TensorId> shared_;  // parameters, and copies of them
  std::vector<std::vector<std::int64_t>> groups_;
};

}  // namespace shardsim
