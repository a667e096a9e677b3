// Where passes end: what is carried goes to the next stage or, of stages that shift in one program,
// from iteration to iteration (shifting_stages.hpp).
#include <algorithm>
#include <string>

#include "base/index.hpp"
#include "strategies/compile/emit_program.hpp"

namespace shardsim {

class ProgramEmitter::Shift {
 public:
  explicit Shift(ProgramEmitter& emitter) : e_(emitter), loop_(*emitter.input_.shifting) {}

  // From the embedding into the iteration in which the first stage takes a microbatch up, from that
  // in which the last is through with it into the head; behind each iteration from stage to stage,
  // by what the loop's body ends with (praxis, layers/pipeline.py, _get_new_loop_state).
  void end(const Action& action, const std::vector<BufferIndex>& carried) {
    const bool is_gradient = action.kind != ActionKind::forward;
    const auto head = static_cast<std::int16_t>(loop_.repeats + 1);
    const std::int64_t t = action.microbatch;
    if (action.stage == 0) return e_.hand_over(1, action.microbatch, is_gradient, carried);
    if (action.stage == head) return hand_to(loop_.leaves_in(t), is_gradient, carried);
    const std::int64_t first_out = loop_.leaves_in(0);
    if (is_gradient && t < loop_.microbatches) e_.hand_over(0, action.microbatch, true, carried);
    if (!is_gradient && t >= first_out) {
      e_.hand_over(head, static_cast<std::int32_t>(t - first_out), false, carried);
    }
    const std::vector<BufferIndex> shifted =
        send(carried, is_gradient);  // behind the last one, too
    const std::int64_t next = is_gradient ? t - 1 : t + 1;
    if (next < 0 || next == loop_.iterations()) return;
    const bool has_own = is_gradient ? next >= first_out : next < loop_.microbatches;
    if (!has_own) hand_to(next, is_gradient, shifted);  // else the first, or last, stage's own
  }

 private:
  void hand_to(std::int64_t iteration, bool is_gradient, const std::vector<BufferIndex>& carried) {
    e_.hand_over(loop_.layers_in(iteration), static_cast<std::int32_t>(iteration), is_gradient,
                 carried);
  }

  // The next iteration begins with what arrives.
  std::vector<BufferIndex> send(const std::vector<BufferIndex>& carried, bool is_gradient) {
    const Shifts& shifts = e_.input_.shifts;
    const std::string name = is_gradient ? "shifted gradient" : "shifted state";
    std::vector<BufferIndex> shifted;
    for (const BufferIndex from : carried) {
      if (from == no_buffer) {
        shifted.push_back(no_buffer);
        continue;
      }
      const Bytes bytes = e_.buffers_[from].buffer.bytes;
      std::vector<BufferIndex> to;
      for (Collective collective : is_gradient ? shifts.backward : shifts.forward) {
        collective.payload = bytes;
        collective.parts = {{name, bytes}};
        to.push_back(e_.open_staging(name, bytes));
        const TaskId sent =
            e_.emit_collective(collective, Stream::activations, name, {to.back()}, {from});
        e_.awaited_ = std::max(e_.awaited_, sent);
      }
      shifted.push_back(to.front());
    }
    return shifted;
  }

  ProgramEmitter& e_;
  const ShiftingPipeline& loop_;
};

void ProgramEmitter::end_passage(const Action& action, const Passage& passage) {
  if (input_.shifting) return Shift(*this).end(action, passage.carried);
  // What has been carried to its end goes into the next stage, or the one before.
  const bool is_gradient = action.kind != ActionKind::forward;
  const auto next = static_cast<std::int16_t>(action.stage + (is_gradient ? -1 : 1));
  hand_over(next, action.microbatch, is_gradient, passage.carried);
}

}  // namespace shardsim
