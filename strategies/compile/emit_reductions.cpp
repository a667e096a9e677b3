// Units of gradients in one program: added up over microbatches, held on their way, waited for.
#include <algorithm>
#include <utility>

#include "strategies/compile/emit_program.hpp"

namespace shardsim {

void ProgramEmitter::accumulate(const ResolvedPass& pass, std::int64_t i) {
  if (is_first_pass_) {
    for (const auto& [sum, summand] : pass.pass->sums) {
      for_each_buffer(sum, i, [&, into = sum, from = summand](std::int64_t k) {
        buffers_.entry(into, k) = buffers_.buffer_of(from, k);
      });
    }
  } else {
    emit_items(pass.additions, i);
  }
  const bool at_the_end = has_stages_ && input_.runtime.reductions.after_last_backward;
  if (is_last_pass_ && !at_the_end) emit_items(pass.last_reductions, i);
}

// Of units: what the reduction reads that was made for it, and the sum over replicas.
void ProgramEmitter::hold_gradients(const Item& reduction, std::int64_t i) {
  if (is_scatter(reduction) || reduction.kernel.op == "copy") {
    std::vector<BufferIndex> read;
    for (const ValueId operand : reduction.operands) {
      if (buffers_.value(operand).category != BufferCategory::communication) continue;
      for_each_buffer(operand, i,
                      [&](std::int64_t k) { read.push_back(buffers_.buffer_of(operand, k)); });
    }
    held_gradients_.hold_copied_in(read, {reduction.name, layer_, microbatch_}, kernel_before_);
    return;
  }
  const AxisList& axes = reduction.collective.axes;
  const bool is_over_data = reduction.kind == TaskKind::collective &&
                            std::all_of(axes.begin(), axes.end(), [&](const AxisRef& axis) {
                              return overlaps_any(axis, input_.data_axes);
                            });
  if (!is_over_data) return;
  for (const ValueId result : reduction.results) {
    for_each_buffer(result, i, [&](std::int64_t k) {
      held_gradients_.hold_sum(buffers_.buffer_of(result, k));
    });
  }
}

// Behind a microbatch's backward pass, without stages, where gradients are held.
void ProgramEmitter::await_reductions() {
  const Reductions& reductions = input_.runtime.reductions;
  const bool is_asked = reductions.awaited == AwaitReductions::microbatch || is_last_pass_;
  if (reductions.copies != GradientCopies::chunks || !is_asked) return;
  const auto reduction =
      std::find_if(program_.tasks.rbegin(), program_.tasks.rend(), [](const Task& task) {
        return task.stream == static_cast<std::uint8_t>(Stream::reductions);
      });
  if (reduction == program_.tasks.rend()) return;
  const auto last = static_cast<TaskId>(program_.tasks.rend() - reduction) - 1;
  held_gradients_.give_back(last);
  awaited_ = std::max(awaited_, last);
}

}  // namespace shardsim
