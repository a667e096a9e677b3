// What FSDP2 holds of gradients on their way to shards (torch 2.15, _fsdp_param_group.py).
//
//   copied in   a unit's gradients in the array that is reduced, of each group of them one: until
//               the next unit copies, which waits for the reductions that read them (post_backward:
//               reduce_scatter_states)
//   added up    over replicas: until computation waits for all reductions (_all_reduce_state,
//               finalize_backward). Where it becomes the gradient itself, it stays anyhow
#pragma once

#include <cstdint>
#include <string_view>
#include <tuple>
#include <vector>

#include "strategies/compile/value_buffers.hpp"

namespace shardsim {

class HeldGradients {
 public:
  explicit HeldGradients(ValueBuffers& buffers) : buffers_(buffers) {}

  // A unit in one microbatch's backward pass: its name, its layer.
  using UnitPass = std::tuple<std::string_view, std::int32_t, std::int32_t>;
  // By a unit, for its reduction. `copied_at`: the kernel that the unit before is held until.
  void hold_copied_in(const std::vector<BufferIndex>& copied, const UnitPass& unit,
                      TaskId copied_at);
  void hold_sum(BufferIndex sum) { sums_.push_back(sum); }
  // All are waited for, up to this task.
  void give_back(TaskId last_reduction);

 private:
  ValueBuffers& buffers_;
  UnitPass unit_;
  std::vector<BufferIndex> copied_in_;  // by that unit
  std::vector<BufferIndex> sums_;
};

}  // namespace shardsim
