// Which gradients a pass has left, and so which buckets are full: counted as items are emitted. A
// bucket is reduced with its last gradient or, where buckets close before they take one too many,
// with the first of the next.
#include <algorithm>
#include <utility>

#include "base/index.hpp"
#include "strategies/compile/emit_program.hpp"

namespace shardsim {

// As autograd hands them over: of a product its bias first (made_parameters). How many of these are
// there when the first so many writes are through?
std::size_t ProgramEmitter::handed_over(const BlockPass& pass, std::size_t writes) {
  auto known = turns_.find(&pass);
  if (known == turns_.end()) {
    std::vector<TensorId> order;
    for (const RegisteredParameter& one : made_parameters(
             input_.workload, pass, at(block_), input_.runtime.flat_parameters.has_value())) {
      order.push_back(one.front());
    }
    known = turns_.emplace(&pass, std::move(order)).first;
  }
  const auto is_there = [&](TensorId parameter) {
    return std::any_of(pass.writes.begin(),
                       pass.writes.begin() + static_cast<std::ptrdiff_t>(writes),
                       [&](const Write& write) { return write.parameter == parameter; });
  };
  const auto missing = std::find_if_not(known->second.begin(), known->second.end(), is_there);
  return static_cast<std::size_t>(missing - known->second.begin());
}

// `items` of the body are through: which gradients have they left?
void ProgramEmitter::count_written(const BlockPass& pass, std::size_t items, std::int64_t ordinal) {
  if (open_buckets_.empty() || phase_ == Phase::forward) return;
  const auto waits = [&](const Write& write) {
    return input_.step.buffered.at(write.parameter).one_by_one;
  };
  const GradientBuffer& rule = *input_.runtime.reductions.buffer;
  const bool in_turn = rule.order == BufferOrder::made && rule.closes == BucketCloses::before &&
                       std::none_of(pass.writes.begin(), pass.writes.end(), waits);
  for (auto write = pass.writes.begin(); write != pass.writes.end(); ++write) {
    if (write->after != items) continue;
    if (input_.runtime.flat_parameters) {
      last_gradient_ = buffers_.buffer_of(pass.body[items - 1].operands.front(), ordinal);
    }
    const auto number_of_write = static_cast<std::size_t>(write - pass.writes.begin());
    if (!waits(*write)) {
      std::vector<TensorId> parameters = {write->parameter};
      if (in_turn) {
        const std::size_t before = handed_over(pass, number_of_write);
        const std::size_t now = handed_over(pass, number_of_write + 1);
        const std::vector<TensorId>& order = turns_.at(&pass);
        parameters.assign(order.begin() + static_cast<std::ptrdiff_t>(before),
                          order.begin() + static_cast<std::ptrdiff_t>(now));
      }
      if (lies_beside(rule.kept)) copy_beside(write->parameter, ordinal);
      for (const TensorId parameter : parameters) {
        for (const std::size_t number :
             buckets_of_.at({parameter, static_cast<std::int32_t>(ordinal)})) {
          count_gradient(number);
        }
      }
      continue;
    }
    if (std::any_of(write + 1, pass.writes.end(), waits)) continue;
    // The last of a block's experts: they have come in the order of the buffer.
    std::vector<std::size_t> numbers;
    for (const Write& other : pass.writes) {
      if (!waits(other)) continue;
      const auto& own = buckets_of_.at({other.parameter, static_cast<std::int32_t>(ordinal)});
      numbers.insert(numbers.end(), own.begin(), own.end());
    }
    std::sort(numbers.begin(), numbers.end());
    for (const std::size_t number : numbers) count_gradient(number);
  }
}

void ProgramEmitter::count_gradient(std::size_t number) {
  note_first_gradient();
  if (number != waiting_) reduce_waiting();
  OpenBucket& bucket = open_buckets_[number];
  // Of a stack of experts one bucket alone is what the kernel says it writes.
  if (bucket.of_experts()) buffers_[bucket.gradients.front()].written_by = last_kernel_;
  if (--bucket.missing > 0) return;
  if (reduces_each_microbatch()) {
    bucket.missing = bucket.gradients_of_pass;
    bucket.is_reduced = false;
  }
  if (reduces_when_ready()) waiting_ = number;
  if (input_.runtime.reductions.buffer->closes == BucketCloses::after) reduce_waiting();
}

// Which bucket is full is known with its last gradient or, where it closes before it takes one too
// many, with the first of the next.
void ProgramEmitter::reduce_waiting() {
  if (waiting_ == no_bucket) return;
  const Phase phase = phase_;
  const std::int32_t layer = layer_;
  reduce_bucket(open_buckets_[std::exchange(waiting_, no_bucket)]);
  phase_ = phase;
  layer_ = layer;
}

// Backward is through. DeepSpeed's last bucket is reduced within the hook of the last gradient, of
// which autograd has still what it has made.
void ProgramEmitter::reduce_last() {
  const BufferIndex last = std::exchange(last_gradient_, no_buffer);
  const bool waits = waiting_ != no_bucket;
  reduce_waiting();
  if (!waits || last == no_buffer || !input_.runtime.flat_parameters) return;
  buffers_.use(last, static_cast<TaskId>(program_.tasks.size()) - 1, program_.tasks.back().stream);
}

}  // namespace shardsim
