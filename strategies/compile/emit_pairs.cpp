// A forward and a backward pass that go layer by layer in turn, so that the rows of one travel
// beside the work of the other (runtime/exchange_overlap.hpp).
#include <algorithm>
#include <optional>
#include <utility>

#include "base/index.hpp"
#include "strategies/compile/emit_program.hpp"
#include "strategies/runtime/exchange_overlap.hpp"

namespace shardsim {

// Of what a part does: all, in its order, or one side of it.
enum class Side : std::uint8_t { all, inputs, weights };

class ProgramEmitter::Pair {
 public:
  Pair(ProgramEmitter& emitter, const Action& forward, const Action& backward)
      : e_(emitter),
        is_late_(emitter.input_.runtime.exchange_overlap == ExchangeOverlap::late_weights),
        forward_(begin(forward)),
        backward_(begin(backward)) {}

  // Head and embedding stand alone: the embedding before, the head's gradient first.
  void run() {
    while (is_left(forward_) && !is_layer(forward_)) run_alone(forward_);
    while (is_left(backward_) && !is_layer(backward_)) run_alone(backward_);
    while (is_left(forward_) && is_left(backward_) && is_layer(forward_) && is_layer(backward_)) {
      run_layers();
    }
    while (is_left(backward_) && is_layer(backward_)) run_alone(backward_);
    while (is_left(forward_) && is_layer(forward_)) run_alone(forward_);
    e_.pair_ends_ = {forward_.last, backward_.last};
    while (is_left(forward_)) run_alone(forward_);
    while (is_left(backward_)) run_alone(backward_);
    end(forward_);
    end(backward_);
  }

 private:
  struct Lane {
    Action action;
    Phase phase = Phase::forward;
    Passage passage{};
    std::size_t next = 0;  // segment
    bool is_first_pass = false;
    bool is_last_pass = false;
    std::optional<ExchangeCuts> cuts = {};  // of that segment
    TaskId last = no_task;                  // task that rows and messages wait for
  };

  Lane begin(const Action& action) {
    Lane lane{.action = action};
    e_.begin_action(action);
    const bool is_forward = action.kind == ActionKind::forward;
    lane.phase = is_forward ? Phase::forward : Phase::backward;
    lane.passage = is_forward ? e_.begin_forward(action) : e_.begin_backward(action, Part::whole);
    lane.is_first_pass = e_.is_first_pass_;
    lane.is_last_pass = e_.is_last_pass_;
    return lane;
  }

  void end(Lane& lane) {
    enter(lane);
    e_.end_passage(lane.action, lane.passage);
    e_.end_action(lane.action);
  }

  void enter(const Lane& lane) {
    e_.microbatch_ = lane.action.microbatch;
    e_.buffers_.select(e_.microbatch_);
    e_.is_first_pass_ = lane.is_first_pass;
    e_.is_last_pass_ = lane.is_last_pass;
    if (is_left(lane)) e_.set_place(segment(lane).instance, lane.phase);
  }

  static bool is_left(const Lane& lane) { return lane.next < lane.passage.segments.size(); }
  static const Segment& segment(const Lane& lane) { return lane.passage.segments[lane.next]; }
  [[nodiscard]] bool is_layer(const Lane& lane) const {
    return e_.layer_of(segment(lane).instance) >= 0;
  }

  void run_alone(Lane& lane) {
    enter(lane);
    e_.run_segment(lane.passage, lane.next++, lane.phase);
    lane.last = e_.last_kernel_;
  }

  void run_layers() {
    Lane& f = forward_;
    Lane& b = backward_;
    open(b);
    open(f);
    if (b.cuts) emit(b, {0, b.cuts->first.end});
    emit(f, {0, f.cuts ? f.cuts->first.first : size(f)});
    if (b.cuts) emit(b, between(b), is_late_ ? Side::inputs : Side::all);
    if (f.cuts) emit(f, f.cuts->first);
    if (b.cuts) emit(b, b.cuts->second);
    if (b.cuts && is_late_) emit(b, between(b), Side::weights);
    if (f.cuts) emit(f, {f.cuts->first.end, f.cuts->second.end});
    const ItemRange behind{b.cuts ? b.cuts->second.end : 0, size(b)};
    emit(b, behind, is_late_ ? Side::inputs : Side::all);
    if (f.cuts) emit(f, {f.cuts->second.end, size(f)});
    if (is_late_) emit(b, behind, Side::weights);
    close(b);
    close(f);
  }

  static std::size_t size(const Lane& lane) { return segment(lane).pass.body.size(); }
  static ItemRange between(const Lane& lane) {
    return {lane.cuts->first.end, lane.cuts->second.first};
  }

  void open(Lane& lane) {
    enter(lane);
    lane.cuts = exchange_cuts(*segment(lane).pass.pass);
    e_.enter_segment(lane.passage, lane.next, lane.phase);
    e_.begin_segment();
    if (lane.phase != Phase::forward) {
      e_.open_gradients_of(*segment(lane).pass.pass, segment(lane).instance.ordinal);
      e_.bring_ahead(lane.passage.segments, lane.next);
    }
  }

  void close(Lane& lane) {
    enter(lane);
    if (lane.phase == Phase::forward) e_.send_to_host(segment(lane));
    e_.end_segment(segment(lane), lane.phase);
    e_.leave_segment(lane.passage, lane.next, lane.phase);
    ++lane.next;
  }

  void emit(Lane& lane, ItemRange range, Side side = Side::all) {
    enter(lane);
    const ResolvedPass& pass = segment(lane).pass;
    const std::int64_t i = segment(lane).instance.ordinal;
    for (std::size_t item = range.first; item < range.end; ++item) {
      const bool is_input = pass.for_input.empty() || pass.for_input[item];
      if (side != Side::all && is_input != (side == Side::inputs)) continue;
      e_.gather_buckets_for(pass, item, i);
      const bool waits = is_exchange(*pass.body[item].item);
      e_.emit_item(pass.body[item], i, waits ? lane.last : no_task);
      const auto id = static_cast<TaskId>(e_.program_.tasks.size()) - 1;
      if (side != Side::weights) lane.last = id;
      e_.count_written(*pass.pass, item + 1, i);
    }
  }

  ProgramEmitter& e_;
  bool is_late_;
  Lane forward_, backward_;
};

void ProgramEmitter::run_pair(const Action& forward, const Action& backward) {
  Pair(*this, forward, backward).run();
}

}  // namespace shardsim
