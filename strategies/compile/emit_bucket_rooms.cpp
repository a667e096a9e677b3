// Where buckets are filled: each in a place of its own, or in rooms that they share.
//
//   ZeRO 1   one room, filled with gradients, which then end, when backward is through, but there
//            from its first gradient on; with overlap_comm a second one
//   ZeRO 2   one room, or with overlap_comm two that are filled by turns, from the first gradient
//            of a microbatch to its end; a parameter that is larger lies by itself
//   ZeRO 3   one that stays (BufferKept::room)
//
// What is larger and is the sum of several gradients (tied embeddings) lies where the first of them
// was made if autograd adds up in its place (partition/sums_of_views.hpp).
// Source: deepspeed/runtime/zero/stage_1_and_2.py (0.19.8), setup_buckets,
// reduce_independent_p_g_buckets_and_remove_grads, independent_gradient_partition_epilogue.
#include <algorithm>
#include <utility>

#include "base/index.hpp"
#include "strategies/compile/emit_program.hpp"

namespace shardsim {

bool ProgramEmitter::fills_rooms() const {
  const auto& optimizer = input_.runtime.flat_optimizer;
  return optimizer && optimizer->gathers_together &&
         input_.runtime.reductions.buffer->kept == BufferKept::shards;
}

void ProgramEmitter::open_step_rooms() {
  const GradientBuffer& rule = *input_.runtime.reductions.buffer;
  const auto& optimizer = input_.runtime.flat_optimizer;
  if (!optimizer || !optimizer->gathers_together || !step_rooms_.empty()) return;
  if (rule.kept != BufferKept::step && !fills_rooms()) return;
  const std::size_t rooms = rule.two_rooms ? 2 : 1;
  const Bytes bytes = rule.bucket_elements * size_of(input_.gradient_dtype);
  while (step_rooms_.size() < rooms) {
    step_rooms_.push_back(open_staging("room for a gradient bucket", bytes));
    buffers_[step_rooms_.back()].opens_when_written = fills_rooms();
  }
}

// With a first gradient: those that it is not written to are there as well.
void ProgramEmitter::note_first_gradient() {
  open_step_rooms();
  for (const BufferIndex room : step_rooms_) {
    if (!std::exchange(buffers_[room].opens_when_written, false)) continue;
    buffers_[room].buffer.allocated_by = static_cast<TaskId>(program_.tasks.size());
  }
}

void ProgramEmitter::close_step_rooms() {
  const auto last = static_cast<TaskId>(program_.tasks.size()) - 1;
  step_rooms_.insert(step_rooms_.end(), beside_rooms_.begin(), beside_rooms_.end());
  beside_rooms_.clear();
  for (const BufferIndex room : std::exchange(step_rooms_, {})) {
    buffers_.use(room, last, program_.tasks.back().stream);
  }
}

// Of ZeRO 1, whose gradients have lain by themselves and end with it. One that is larger is reduced
// where it lies, and stays until all are (_clear_param_grad_only), but for one of the device's own
// part, which is copied there.
void ProgramEmitter::fill_room(OpenBucket& bucket) {
  const GradientBuffer& rule = *input_.runtime.reductions.buffer;
  if (rule.kept != BufferKept::step || step_rooms_.empty()) return;
  if (unpadded(bucket.bucket) > rule.bucket_elements) {
    if (!is_of_own_part(bucket.bucket)) beside_rooms_.push_back(bucket.gradients.front());
    return;
  }
  const auto number = static_cast<std::size_t>(&bucket - open_buckets_.data());
  const std::vector<BufferIndex> room = {step_rooms_[number % step_rooms_.size()]};
  const Bytes bytes = 2 * (unpadded(bucket.bucket) * size_of(input_.gradient_dtype));
  emit_copy("copy", input_.gradient_dtype, bytes, bucket.name + " in the room", bucket.gradients,
            room, Stream::compute);
  bucket.gradients = room;
}

BufferIndex ProgramEmitter::place_of(const OpenBucket& bucket) {
  const Bucket& what = bucket.bucket;
  const bool fits = unpadded(what) <= input_.runtime.reductions.buffer->bucket_elements;
  if (fits && room_ != no_buffer) return room_;
  if (fits && fills_rooms()) {
    open_step_rooms();
    const auto number = static_cast<std::size_t>(&bucket - open_buckets_.data());
    return step_rooms_[number % step_rooms_.size()];
  }
  const BufferedParameter& one = what.parameters.front();
  const ValueId first = input_.step.buffered.at(one.tensors.front()).first;
  if (first != no_value) {
    const BufferIndex made = buffers_.buffer_of(first, one.instance.ordinal);
    if (made != no_buffer) return made;
  }
  return open_buffer(bucket.name, BufferCategory::gradients,
                     what.elements * size_of(input_.gradient_dtype));
}

void ProgramEmitter::open_gradients(OpenBucket& bucket) {
  bucket.gradients = {place_of(bucket)};
  for (const BufferedParameter& parameter : bucket.bucket.parameters) {
    for (const TensorId tensor : parameter.tensors) {
      buffers_.entry(input_.step.buffered.at(tensor).main, parameter.instance.ordinal) =
          bucket.gradients.front();
    }
  }
}

void ProgramEmitter::open_beside(OpenBucket& bucket) {
  bucket.beside = open_buffer(bucket.name, BufferCategory::gradients,
                              bucket.bucket.elements * size_of(input_.gradient_dtype));
  buffers_[bucket.beside].persistent = true;
}

// Where gradients are, once all have been made and copied.
void ProgramEmitter::list_gradients(OpenBucket& bucket) {
  if (input_.runtime.reductions.buffer->kept == BufferKept::views) {
    bucket.gradients = {bucket.beside};
    return;
  }
  bucket.gradients.clear();
  for (const BufferedParameter& parameter : bucket.bucket.parameters) {
    for (const TensorId tensor : parameter.tensors) {
      bucket.gradients.push_back(
          buffers_.buffer_of(input_.step.buffered.at(tensor).main, parameter.instance.ordinal));
    }
  }
}

// As the last microbatch has made it.
void ProgramEmitter::copy_beside(TensorId parameter, std::int64_t ordinal) {
  if (!is_last_pass_) return;
  const ValueId main = input_.step.buffered.at(parameter).main;
  for (const std::size_t number : buckets_of_.at({parameter, static_cast<std::int32_t>(ordinal)})) {
    const OpenBucket& bucket = open_buckets_[number];
    emit_copy("copy", input_.gradient_dtype, 2 * buffers_.value(main).bytes,
              bucket.name + " copied in", {buffers_.buffer_of(main, ordinal)}, {bucket.beside},
              Stream::compute);
    if (input_.runtime.reductions.buffer->kept == BufferKept::views) {
      buffers_.entry(main, ordinal) = bucket.beside;
    }
  }
}

// Behind all reductions; a kernel for each gradient.
void ProgramEmitter::copy_out_of(const OpenBucket& bucket) {
  if (input_.runtime.reductions.buffer->kept == BufferKept::views) return;
  Kernel copy{"copy", KernelClass::memory, input_.gradient_dtype, Flops(0),
              2 * buffers_[bucket.beside].buffer.bytes};
  copy.launches = static_cast<std::int32_t>(bucket.gradients.size());
  emit_kernel(copy, bucket.name + " copied out", {bucket.beside}, bucket.gradients);
}

// Before a backward pass: the buckets that it writes to, if they are not there.
void ProgramEmitter::open_gradients_of(const BlockPass& pass, std::int64_t ordinal) {
  if (open_buckets_.empty() || open_buckets_.front().beside != no_buffer) return;
  for (const Write& write : pass.writes) {
    for (const std::size_t number :
         buckets_of_.at({write.parameter, static_cast<std::int32_t>(ordinal)})) {
      OpenBucket& bucket = open_buckets_[number];
      if (!bucket.gradients.empty()) continue;
      open_gradients(bucket);
      OpenBuffer& place = buffers_[bucket.gradients.front()];
      const bool is_there = place.written_by != no_task || place.opens_when_written;
      if (bucket.gradients.front() == room_ || is_there) continue;
      // With the first that writes to it; of experts with the next task, the first of the pass.
      place.buffer.allocated_by = static_cast<TaskId>(program_.tasks.size());
      place.opens_when_written = true;
    }
  }
}

// A product that adds a gradient to the buffer hands autograd an empty tensor in its place,
// which the hook behind it lets go (megatron/core/tensor_parallel/layers.py,
// LinearWithGradAccumulationAndAsyncCommunication.backward). Transformer Engine's keep one.
void ProgramEmitter::hand_over_gradients(const Item& item) {
  if (item.kernel.added == Bytes(0)) return;
  Bytes bytes{0};
  for (const ValueId result : item.results) {
    const Value& main = buffers_.value(result);
    const auto known = input_.step.buffered.find(input_.workload.tensors[at(main.tensor)].primal);
    if (known == input_.step.buffered.end()) continue;
    const BufferedGradient& gradient = known->second;
    const std::int64_t modules =
        gradient.one_by_one ? std::max<std::int64_t>(gradient.experts, 1) : 1;
    bytes += gradient.elements / modules * size_of(item.kernel.dtype);
  }
  if (bytes == Bytes(0)) return;
  const BufferIndex empty = open_buffer(item.name, BufferCategory::temporaries, bytes);
  buffers_[empty].buffer.allocated_by = last_kernel_;
  buffers_.use(empty, last_kernel_, static_cast<std::size_t>(Stream::compute));
}

// As large as the largest value that lies in it.
void ProgramEmitter::open_room_of_values() {
  Bytes largest{0};
  for (const std::int16_t stage : input_.schedule.shape.stages_of(rank_)) {
    for (const BlockInstance& instance : instances_of(stage)) {
      for (const Item& item : input_.step.blocks[at(instance.block)].forward.body) {
        for (const ValueId made : item.results) {
          largest = std::max(largest, buffers_.value(made).in_room);
        }
      }
    }
  }
  if (largest == Bytes(0)) return;
  const BufferIndex room = open_buffer("gathered rows", BufferCategory::communication, largest);
  buffers_[room].persistent = true;
}

}  // namespace shardsim
