// Between the iterations of stages that shift in one program (shifting_stages.hpp).
#include <algorithm>

#include "base/index.hpp"
#include "strategies/compile/emit_program.hpp"

namespace shardsim {

// From the embedding into the iteration in which the first stage takes a microbatch up, from that
// in which the last is through with it into the head; between two iterations from stage to stage.
void ProgramEmitter::end_shifting_passage(const Action& action,
                                          const std::vector<BufferIndex>& carried) {
  const ShiftingPipeline& loop = *input_.shifting;
  const bool is_gradient = action.kind != ActionKind::forward;
  const auto head = static_cast<std::int16_t>(loop.repeats + 1);
  const std::int64_t t = action.microbatch;
  if (action.stage == 0) return hand_over(1, action.microbatch, is_gradient, carried);
  if (action.stage == head) {
    const std::int64_t last = loop.leaves_in(t);
    hand_over(loop.layers_in(last), static_cast<std::int32_t>(last), is_gradient, carried);
    return;
  }
  const std::int64_t first_out = loop.leaves_in(0);
  if (is_gradient && t < loop.microbatches) hand_over(0, action.microbatch, true, carried);
  if (!is_gradient && t >= first_out) {
    hand_over(head, static_cast<std::int32_t>(t - first_out), false, carried);
  }
  const std::int64_t next = is_gradient ? t - 1 : t + 1;
  if (next < 0 || next == loop.iterations()) return;
  const std::vector<BufferIndex> shifted = shift(carried, is_gradient);
  const bool has_own = is_gradient ? next >= first_out : next < loop.microbatches;
  if (has_own) return;  // what the first stage, or the last, begins with
  hand_over(loop.layers_in(next), static_cast<std::int32_t>(next), is_gradient, shifted);
}

// The next iteration begins with what arrives.
std::vector<BufferIndex> ProgramEmitter::shift(const std::vector<BufferIndex>& carried,
                                               bool is_gradient) {
  std::vector<BufferIndex> shifted;
  for (const BufferIndex from : carried) {
    if (from == no_buffer) {
      shifted.push_back(no_buffer);
      continue;
    }
    std::vector<BufferIndex> to;
    const Bytes bytes = buffers_[from].buffer.bytes;
    const std::string name = is_gradient ? "shifted gradient" : "shifted state";
    for (Collective collective : is_gradient ? input_.shifts.backward : input_.shifts.forward) {
      collective.payload = bytes;
      collective.parts = {{name, bytes}};
      to.push_back(open_staging(name, bytes));
      const TaskId sent =
          emit_collective(collective, Stream::activations, name, {to.back()}, {from});
      awaited_ = std::max(awaited_, sent);
    }
    shifted.push_back(to.front());
  }
  return shifted;
}

}  // namespace shardsim
