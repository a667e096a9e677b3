// Where passes end: what is carried goes to the next stage or, of stages that shift in one program,
// into the loop, from iteration to iteration and out of it (shifting_stages.hpp).
#include <algorithm>
#include <string>
#include <utility>

#include "base/index.hpp"
#include "strategies/compile/emit_program.hpp"

namespace shardsim {

class ProgramEmitter::Shift {
 public:
  explicit Shift(ProgramEmitter& emitter)
      : e_(emitter),
        loop_(emitter.loop_),
        pipeline_(*emitter.input_.shifting),
        shifts_(emitter.input_.shifts),
        streams_(shifts_.results.empty()) {}

  void end(const Action& action, const Carried& carried) {
    const bool is_gradient = action.kind != ActionKind::forward;
    if (action.stage == head()) {
      if (is_gradient) begin_backward(carried);
    } else if (action.stage != 0) {
      is_gradient ? end_backward(action.microbatch, carried)
                  : end_forward(action.microbatch, carried);
    } else if (!is_gradient) {
      loop_.inputs = carried;
      take_up(0, {});
    }
  }

 private:
  // The shift ends an iteration, the last too (praxis, layers/pipeline.py, _get_new_loop_state).
  void end_forward(std::int64_t t, const Carried& made) {
    if (!streams_) loop_.made.push_back(made);
    const Carried shifted = send(shifts_.forward, made, "shifted state");
    send_late(shifts_.late, t, made, "late state");
    if (t + 1 < pipeline_.iterations()) return take_up(t + 1, shifted);
    Carried results = loop_.inputs;  // the stream is full of them
    if (!streams_) {
      const std::vector<ValueId>& in = first_of(head()).carries_in;
      results = for_each(made, [&](std::size_t k, BufferIndex one) {
        const BufferIndex slice =
            exchange(shifts_.results.front(), pipeline_.iterations() * bytes_of(one), made_of(k),
                     "results of the last stage");
        return exchange(shifts_.results.back(), e_.buffers_.value(in[k]).bytes, {slice}, "results");
      });
      loop_.made.clear();
    }
    loop_.late.clear();
    e_.hand_over(head(), 0, false, results);
  }

  // The first stage takes an input up, the others what they are handed: a select on all.
  void take_up(std::int64_t t, const Carried& shifted) {
    const std::vector<ValueId>& in = first_of(1).carries_in;
    hand_to(t, false, for_each(loop_.inputs, [&](std::size_t k, BufferIndex inputs) {
              std::vector<BufferIndex> read = {inputs};
              if (!shifted.empty()) read.push_back(shifted[k]);
              add_late(t - lateness(), k, read);
              return combine("select", in[k], read, "what a stage takes up");
            }));
  }

  void begin_backward(const Carried& gradients) {
    loop_.results_gradient = gradients;
    if (!streams_) {
      loop_.results_gradient = for_each(gradients, [&](std::size_t, BufferIndex gradient) {
        return exchange(shifts_.gradients_of_results.front(), bytes_of(gradient), {gradient},
                        "gradient of the results");
      });
    }
    enter_backward(pipeline_.iterations() - 1, {});
  }

  // A result's gradient comes from the head and from the iteration behind.
  void enter_backward(std::int64_t t, const Carried& shifted) {
    const bool has_late = loop_.late.count(t + lateness()) > 0;
    if (t < pipeline_.leaves_in(0) && !has_late) return hand_to(t, true, shifted);
    const std::vector<ValueId>& out = last_of(1).gradients_of_carries_out;
    hand_to(t, true, for_each(loop_.results_gradient, [&](std::size_t k, BufferIndex results) {
              std::vector<BufferIndex> read;
              if (t >= pipeline_.leaves_in(0)) read.push_back(results);
              if (!shifted.empty() && shifted[k] != no_buffer) read.push_back(shifted[k]);
              add_late(t + lateness(), k, read);
              return combine("add", out[k], read, "gradient of a stage's result");
            }));
  }

  // What a stage took up was an input's or its neighbour's, and so is the gradient.
  void end_backward(std::int64_t t, const Carried& gradients) {
    const std::vector<ValueId>& in = first_of(1).gradients_of_carries_in;
    const auto part = [&](const char* of) {
      return for_each(gradients, [&](std::size_t k, BufferIndex gradient) {
        return combine("select", in[k], {gradient, loop_.inputs[k]}, of);
      });
    };
    if (t < pipeline_.microbatches && !streams_) loop_.made.push_back(part("gradient of an input"));
    const Carried shifted = send(shifts_.backward, part("gradient of a state"), "shifted gradient");
    if (!shifts_.late_backward.empty()) {
      send_late(shifts_.late_backward, t, part("late gradient"), "late gradient");
    }
    if (t > 0) return enter_backward(t - 1, shifted);
    Carried inputs = loop_.results_gradient;
    if (!streams_) {
      const std::vector<ValueId>& out = last_of(0).gradients_of_carries_out;
      inputs = for_each(gradients, [&](std::size_t k, BufferIndex) {
        return exchange(shifts_.gradients_of_inputs.front(), e_.buffers_.value(out[k]).bytes,
                        made_of(k), "gradient of the inputs");
      });
    }
    e_.hand_over(0, 0, true, inputs);
    loop_ = {};
  }

  // What iteration t has made is taken up in t + lateness() (praxis, _get_iteration_inputs).
  [[nodiscard]] std::int64_t lateness() const {
    return pipeline_.microbatches - pipeline_.stages + 1;
  }

  // Beside the next iteration, which does not wait for it; the one behind that does.
  void send_late(const std::vector<Collective>& late, std::int64_t t, const Carried& carried,
                 const std::string& name) {
    if (late.empty()) return;
    const TaskId awaited = std::max(e_.awaited_, std::exchange(loop_.late_task, no_task));
    loop_.late[t] = send(late, carried, name);
    loop_.late_task = std::exchange(e_.awaited_, awaited);
  }

  void add_late(std::int64_t t, std::size_t k, std::vector<BufferIndex>& read) const {
    const auto late = loop_.late.find(t);
    if (late != loop_.late.end() && late->second[k] != no_buffer) read.push_back(late->second[k]);
  }

  [[nodiscard]] std::int16_t head() const {
    return static_cast<std::int16_t>(pipeline_.repeats + 1);
  }
  [[nodiscard]] const BlockProgram& first_of(std::int16_t stage) const {
    return e_.program_of(e_.instances_of(stage).front());
  }
  [[nodiscard]] const BlockProgram& last_of(std::int16_t stage) const {
    return e_.program_of(e_.instances_of(stage).back());
  }
  [[nodiscard]] Bytes bytes_of(BufferIndex buffer) const {
    return e_.buffers_[buffer].buffer.bytes;
  }

  // The k-th of what iterations have made.
  [[nodiscard]] std::vector<BufferIndex> made_of(std::size_t k) const {
    std::vector<BufferIndex> made;
    for (const Carried& one : loop_.made) made.push_back(one[k]);
    return made;
  }

  template <class Make>
  static Carried for_each(const Carried& carried, const Make& make) {
    Carried made;
    for (std::size_t k = 0; k < carried.size(); ++k) {
      made.push_back(carried[k] == no_buffer ? no_buffer : make(k, carried[k]));
    }
    return made;
  }

  void hand_to(std::int64_t iteration, bool is_gradient, const Carried& carried) {
    e_.hand_over(pipeline_.layers_in(iteration), static_cast<std::int32_t>(iteration), is_gradient,
                 carried);
  }

  // A microbatch of each that is read, into one.
  BufferIndex combine(const char* op, ValueId as, const std::vector<BufferIndex>& read,
                      const std::string& name) {
    const Value& value = e_.buffers_.value(as);
    const BufferIndex to = e_.open_staging(name, value.bytes);
    e_.buffers_[to].buffer.category = BufferCategory::activations;
    e_.emit_copy(op, value.dtype, static_cast<std::int64_t>(read.size() + 1) * value.bytes, name,
                 read, {to}, Stream::compute);
    return to;
  }

  BufferIndex exchange(Collective collective, Bytes bytes, const std::vector<BufferIndex>& read,
                       const std::string& name) {
    collective.payload = bytes;
    collective.parts = {{name, bytes}};
    const BufferIndex to = e_.open_staging(name, bytes);
    const TaskId sent = e_.emit_collective(collective, Stream::activations, name, {to}, read);
    e_.awaited_ = std::max(e_.awaited_, sent);
    return to;
  }

  // Of what comes back the first is the state or its gradient: the next iteration begins with it.
  Carried send(const std::vector<Collective>& shifts, const Carried& carried,
               const std::string& name) {
    return for_each(carried, [&](std::size_t, BufferIndex from) {
      const BufferIndex to = exchange(shifts.front(), bytes_of(from), {from}, name);
      for (std::size_t i = 1; i < shifts.size(); ++i) {
        exchange(shifts[i], bytes_of(from), {from}, name);
      }
      return to;
    });
  }

  ProgramEmitter& e_;
  ShiftLoop& loop_;
  const ShiftingPipeline& pipeline_;
  const Shifts& shifts_;
  bool streams_;
};

void ProgramEmitter::end_passage(const Action& action, const Passage& passage) {
  if (input_.shifting) return Shift(*this).end(action, passage.carried);
  // What has been carried to its end goes into the next stage, or the one before.
  const bool is_gradient = action.kind != ActionKind::forward;
  const auto next = static_cast<std::int16_t>(action.stage + (is_gradient ? -1 : 1));
  hand_over(next, action.microbatch, is_gradient, passage.carried);
}

}  // namespace shardsim
