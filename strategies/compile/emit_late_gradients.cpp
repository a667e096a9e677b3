// Gradients of the head's weights that wait until the rank is through (runtime/head_gradient.hpp).
#include <utility>

#include "base/index.hpp"
#include "strategies/compile/emit_program.hpp"
#include "strategies/runtime/head_gradient.hpp"

namespace shardsim {

// What the item reads stays with its microbatch.
bool ProgramEmitter::puts_off(const Segment& segment, std::size_t item) {
  const bool may_wait = has_stages_ && phase_ != Phase::forward && phase_ != Phase::optimizer;
  if (!may_wait || at(segment.instance.block) + 1 != input_.step.blocks.size()) return false;
  if (std::ssize(late_gradients_) >= input_.runtime.late_head_gradients) return false;
  if (head_gradient_item(input_.workload, input_.step.blocks.back()) != item) return false;
  late_gradients_.push_back({microbatch_, segment.instance, item});
  ++passes_left_.at(microbatch_);
  return true;
}

void ProgramEmitter::emit_late_gradients() {
  for (const LateGradient& late : std::exchange(late_gradients_, {})) {
    const std::int64_t i = late.instance.ordinal;
    const ResolvedPass& pass = tables_.block(late.instance.block).backward;
    microbatch_ = late.microbatch;
    buffers_.select(microbatch_);
    set_place(late.instance, Phase::backward);
    emit_item(pass.body[late.item], i, no_task);
    count_written(*pass.pass, late.item + 1, i);
    if (--passes_left_.at(microbatch_) > 0) continue;
    passes_left_.erase(microbatch_);
    buffers_.end(microbatch_);
  }
  reduce_waiting();
}

}  // namespace shardsim
