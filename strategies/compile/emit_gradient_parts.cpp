// Gradients of which each device updates a part, as DeepSpeed's ZeRO 1 and 2 have them:
//
//   a bucket        what of it is in the device's part is copied to where the part is, which has
//                   room for all of each parameter of which the part has something
//   microbatches    each further one has such a place of its own, added to the first when it is
//                   through (ZeRO 2; ZeRO 1 reduces once)
//   the norm        a piece after the other in fp64
//   the update      reads the part in one flat array in fp32, and all else is given back
//
// Devices differ in what they have some of; this is the one that has most.
// Source: deepspeed/runtime/zero/stage_1_and_2.py (0.19.8), copy_grads_in_partition,
// independent_gradient_partition_epilogue, get_grad_norm_direct, step.
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
  for (const OpenBucket& bucket : open_buckets_) {
    if (bucket.stage != stage) continue;
    const AxisList& axes = bucket.bucket.axes;
    OpenPart& part = parts_[axes];
    part.elements += bucket.bucket.elements / shards_of(bucket.bucket);
    const PartSize size =
        largest_part(list, axes, *input_.runtime.reductions.buffer, *input_.runtime.flat_optimizer);
    part.whole = std::max(part.whole, size.whole);
    part.largest = std::max(part.largest, size.largest);
  }
}

void ProgramEmitter::keep_in_part(OpenBucket& bucket, const std::vector<BufferIndex>& reduced) {
  OpenPart& part = parts_.at(bucket.bucket.axes);
  BufferIndex& place = part.is_kept ? part.added : part.kept;
  const Bytes element = size_of(input_.gradient_dtype);
  if (place == no_buffer) {
    place = open_buffer("gradients of a part", BufferCategory::gradients, part.whole * element);
    buffers_[place].buffer.allocated_by = static_cast<TaskId>(program_.tasks.size());
  }
  const std::int64_t elements = bucket.bucket.elements / shards_of(bucket.bucket);
  emit_copy("copy", input_.gradient_dtype, 2 * (elements * element), bucket.name + " part", reduced,
            {place}, Stream::compute);
  bucket.shard = {part.kept};
  bucket.gradients.clear();
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
    part.is_kept = part.kept != no_buffer;
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
