// Gradients of which each device updates a part, as DeepSpeed's ZeRO 1 and 2 have them:
//
//   a bucket        what of it is of several devices' parts is put side by side for the call
//                   (buckets.hpp); parameters of which the device's part has something are copied
//                   to where the part is, which has room for all of each of them
//   microbatches    each further one has such a place of its own, added to the first when it is
//                   through (ZeRO 2; ZeRO 1 reduces once)
//   the norm        a piece after the other in fp64
//   the update      reads the part in one flat array in fp32, and all else is given back
//
// Devices differ in what they have some of; this is the one that has most.
// Source: deepspeed/runtime/zero/stage_1_and_2.py (0.19.8), copy_grads_in_partition,
// independent_gradient_partition_epilogue, get_grad_norm_direct, step.
#include <algorithm>
#include <set>

#include "strategies/compile/emit_program.hpp"

namespace shardsim {

bool ProgramEmitter::has_parts() const {
  const auto& optimizer = input_.runtime.flat_optimizer;
  const auto& buffer = input_.runtime.reductions.buffer;
  return optimizer && optimizer->gathers_together && buffer && buffer->kept != BufferKept::always &&
         !input_.runtime.flat_parameters && !gradients_leave(input_.runtime);
}

void ProgramEmitter::open_parts(std::int16_t stage) {
  if (!has_parts()) return;
  const std::vector<BufferedParameter> list = buffered_parameters(stage, BufferOrder::listed);
  std::set<AxisList> counted;
  for (const OpenBucket& bucket : open_buckets_) {
    if (bucket.stage != stage) continue;
    const AxisList& axes = bucket.bucket.axes;
    OpenPart& part = parts_[axes];
    part.elements += bucket.bucket.elements / shards_of(bucket.bucket);
    if (!counted.insert(axes).second) continue;
    const PartSize size =
        largest_part(list, axes, *input_.runtime.reductions.buffer, *input_.runtime.flat_optimizer);
    if (size.whole <= part.whole) continue;
    part.whole = size.whole;
    part.largest = size.largest;
    part.members.clear();
    for (const std::size_t i : size.members) {
      part.members.insert({list[i].tensors.front(), list[i].instance.ordinal});
    }
  }
  for (auto& [axes, part] : parts_) {
    const Bytes bytes = part.whole * size_of(input_.gradient_dtype);
    if (part.kept == no_buffer) {
      part.kept = open_buffer("gradients of a part", BufferCategory::gradients, bytes);
    }
    buffers_[part.kept].buffer.bytes = bytes;
  }
}

bool ProgramEmitter::is_of_own_part(const Bucket& bucket) const {
  const auto part = parts_.find(bucket.axes);
  if (part == parts_.end()) return false;
  return std::any_of(bucket.parameters.begin(), bucket.parameters.end(), [&](const auto& one) {
    return part->second.members.contains({one.tensors.front(), one.instance.ordinal});
  });
}

// The place is there from the first bucket on that it is for something of.
void ProgramEmitter::keep_in_part(OpenBucket& bucket, const std::vector<BufferIndex>& reduced) {
  OpenPart& part = parts_.at(bucket.bucket.axes);
  const Bytes element = size_of(input_.gradient_dtype);
  std::int64_t elements = 0;
  for (const BufferedParameter& parameter : bucket.bucket.parameters) {
    const ParameterInstance one{parameter.tensors.front(), parameter.instance.ordinal};
    if (part.members.contains(one)) elements += parameter.elements;
  }
  bucket.shard = {part.kept};
  bucket.gradients.clear();
  if (elements == 0) return;
  const auto now = static_cast<TaskId>(program_.tasks.size());
  if (part.has_kept && part.added == no_buffer) {
    part.added =
        open_buffer("gradients of a part", BufferCategory::gradients, part.whole * element);
    buffers_[part.added].buffer.allocated_by = now;
  } else if (!part.has_kept && buffers_[part.kept].written_by == no_task) {
    buffers_[part.kept].buffer.allocated_by = now;
  }
  emit_copy("copy", input_.gradient_dtype, 2 * (elements * element), bucket.name + " part", reduced,
            {part.has_kept ? part.added : part.kept}, Stream::compute);
}

// A microbatch is through.
void ProgramEmitter::add_up_parts() {
  for (auto& [axes, part] : parts_) {
    if (part.added != no_buffer) {
      const Bytes bytes = 3 * (part.elements * size_of(input_.gradient_dtype));
      emit_copy("add", input_.gradient_dtype, bytes, "gradients of a part", {part.added},
                {part.kept}, Stream::compute);
    }
    part.added = no_buffer;
    part.has_kept = true;
  }
}

void ProgramEmitter::widen_parts() {
  for (auto& [axes, part] : parts_) {
    const DType dtype = input_.gradient_dtype;
    const Bytes narrow = part.elements * size_of(dtype);
    const Bytes wide = part.elements * size_of(DType::f32);
    const BufferIndex flat = open_staging("flat gradients of a part", narrow);
    emit_copy("copy", dtype, 2 * narrow, "flat gradients of a part", {part.kept}, {flat},
              Stream::compute);
    part.wide = flat;
    if (dtype == DType::f32) continue;
    part.wide = open_staging("gradients of a part in fp32", wide);
    emit_copy("cast", dtype, narrow + wide, "gradients of a part in fp32", {flat, part.kept},
              {part.wide}, Stream::compute);
  }
}

std::vector<BufferIndex> ProgramEmitter::updated_from(const OpenBucket& bucket) const {
  const auto part = parts_.find(bucket.bucket.axes);
  if (part != parts_.end() && part->second.wide != no_buffer) return {part->second.wide};
  return reduced(bucket);
}

}  // namespace shardsim
