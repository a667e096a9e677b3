// A flat optimizer of buffers that are always there, a part of which the host updates
// (Megatron-Core's --optimizer-cpu-offload with --optimizer-offload-fraction):
//
//   there     of that part fp32 parameters with all state, and gradients in fp32
//   a step    gradients, reduced and clipped on the device, are copied to the host; the device
//             updates its own part; the host updates the other, and its parameters are copied back
//             in their own type
//
// Copies follow each other and the host's work waits for all of them, and they for all of it;
// with --overlap-cpu-optimizer-d2h-h2d bucket by bucket (Megatron: tensor by tensor). The part is
// that of every bucket; Megatron takes whole tensors, the first ones, until it has as much.
//
// Example: 1 billion parameters of a device, half of them: 2 GB of gradients go, 1 GB of bf16
// parameters come back, the host keeps 8 GB: 4 of gradients and 12 of state each.
//
// Source: megatron/core/optimizer/cpu_offloading/hybrid_optimizer.py (0.20).
#include <fmt/format.h>

#include <cmath>

#include "base/index.hpp"
#include "strategies/compile/emit_program.hpp"

namespace shardsim {

// `of_each`: bytes of an element's state.
void ProgramEmitter::open_state(OpenBucket& bucket, std::int64_t elements, Bytes of_each) {
  const Runtime& runtime = input_.runtime;
  const std::string name = "optimizer state of " + bucket.name.substr(bucket.name.find("bucket"));
  const bool halves = runtime.optimizer_on_host && !gradients_leave(runtime);
  if (halves) {
    bucket.elements_on_host = std::llround(runtime.share_on_host * static_cast<double>(elements));
    const std::int64_t there = bucket.elements_on_host;
    bucket.state_on_host = open_on_host(name, BufferCategory::optimizer, there * of_each);
    bucket.gradients_on_host =
        open_on_host(bucket.name, BufferCategory::gradients, there * size_of(DType::f32));
    elements -= there;
  }
  bucket.state = {open_buffer(name, BufferCategory::optimizer, elements * of_each)};
  buffers_[bucket.state.front()].persistent = true;
  buffers_[bucket.state.front()].buffer.on_host = gradients_leave(runtime);
}

void ProgramEmitter::update_with_host(std::int16_t stage) {
  set_phase(Phase::optimizer);
  std::vector<const OpenBucket*> buckets;
  std::vector<BufferIndex> gradients, states;  // there
  for (const OpenBucket& bucket : open_buckets_) {
    if (bucket.stage != stage || bucket.elements_on_host == 0) continue;
    buckets.push_back(&bucket);
    gradients.push_back(bucket.gradients_on_host);
    states.push_back(bucket.state_on_host);
    emit_host_copy_of(TaskKind::to_host, bucket.elements_on_host * size_of(input_.gradient_dtype),
                      bucket.name, reduced(bucket), {bucket.gradients_on_host});
  }
  for (const OpenBucket& bucket : open_buckets_) {
    const bool is_all_there =
        bucket.elements_on_host * shards_of(bucket.bucket) == bucket.bucket.elements;
    if (bucket.stage == stage && !is_all_there) update_bucket(bucket);
  }
  const bool beside = input_.runtime.copies_beside_host;
  const auto dtype_of = [&](const OpenBucket& bucket) {
    const TensorId first = bucket.bucket.parameters.front().tensors.front();
    return buffers_.value(input_.step.parameters.at(first).stored).dtype;
  };
  const auto copy_back = [&](const OpenBucket& bucket, const std::vector<BufferIndex>& read) {
    emit_host_copy_of(TaskKind::from_host, bucket.elements_on_host * size_of(dtype_of(bucket)),
                      bucket.name + " update", read, parameters_of(bucket));
  };
  for (const OpenBucket* bucket : buckets) {
    const Bytes bytes =
        2 * buffers_[bucket->state_on_host].buffer.bytes +
        bucket->elements_on_host * (size_of(DType::f32) + size_of(dtype_of(*bucket)));
    const std::vector<BufferIndex> one = {bucket->gradients_on_host};
    emit_on_host(input_.optimizer, bytes, bucket->name + " update", beside ? one : gradients,
                 {bucket->state_on_host});
    if (beside) copy_back(*bucket, {bucket->state_on_host});
  }
  for (const OpenBucket* bucket : buckets) {
    if (!beside) copy_back(*bucket, states);
  }
}

}  // namespace shardsim
