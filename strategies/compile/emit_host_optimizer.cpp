// The optimizer on the host, as DeepSpeed's ZeRO 2 and 3 offload it (offload_optimizer):
//
//   backward    each bucket that is reduced: the device's part of it is copied to the host, and
//               added to that of the microbatches before there
//   the norm    of these, on the host; its sum over devices is one fp32 number
//   a group     or bucket: the host updates its state from gradients in fp32, and copies what
//               parameters have become to the device
//
// On the host lie the parts of gradients, once as they came and once in fp32, and all state. What
// its processors do is bound by its memory: gradients are read, state is read and written, and
// parameters are written in their own type.
//
// Source: deepspeed/runtime/zero/stage_1_and_2.py, stage3.py (0.19.8).
#include <algorithm>
#include <utility>

#include "base/index.hpp"
#include "strategies/compile/emit_program.hpp"

namespace shardsim {

BufferIndex ProgramEmitter::open_on_host(const std::string& name, BufferCategory category,
                                         Bytes bytes) {
  const BufferIndex buffer = open_buffer(name, category, bytes);
  buffers_[buffer].persistent = true;
  buffers_[buffer].buffer.on_host = true;
  return buffer;
}

// Of ZeRO 2: the largest gradient passes through room of its own, here and there
// (temp_grad_buffer_for_gpu_offload, temp_grad_buffer_for_cpu_offload).
void ProgramEmitter::open_way_to_host() {
  std::int64_t largest = 0;
  for (const OpenBucket& bucket : open_buckets_) {
    for (const BufferedParameter& parameter : bucket.bucket.parameters) {
      for (const TensorId tensor : parameter.tensors) {
        largest = std::max(largest, input_.step.buffered.at(tensor).elements);
      }
    }
  }
  const Bytes bytes = largest * size_of(input_.gradient_dtype);
  const std::string name = "room for a gradient on its way to the host";
  buffers_[open_buffer(name, BufferCategory::gradients, bytes)].persistent = true;
  (void)open_on_host(name, BufferCategory::gradients, bytes);
}

void ProgramEmitter::open_host_gradients(OpenBucket& bucket, std::int64_t elements) {
  bucket.shard = {open_on_host(bucket.name + " shard", BufferCategory::gradients,
                               elements * size_of(input_.gradient_dtype))};
  (void)open_on_host(bucket.name + " shard in fp32", BufferCategory::gradients,
                     elements * size_of(DType::f32));
}

TaskId ProgramEmitter::emit_on_host(std::string_view op, Bytes bytes, const std::string& name,
                                    const std::vector<BufferIndex>& read,
                                    const std::vector<BufferIndex>& written) {
  Task task;
  task.stream = static_cast<std::uint8_t>(host_stream());
  task.work = tables_.kernel({std::string(op), KernelClass::host, DType::f32, Flops(0), bytes});
  return emit_on(task, name, read, written);
}

// The device goes on once the copy is there: what it reads is room for the next.
void ProgramEmitter::add_on_host(OpenBucket& bucket, BufferIndex reduced, std::int64_t elements) {
  const bool is_first = !std::exchange(bucket.has_shard, true);
  const BufferIndex shard = bucket.shard.front();
  after_ = {buffers_[reduced].written_by, buffers_[shard].written_by};
  const TaskId copy =
      emit_host_copy(TaskKind::to_host, shard, tables_.name(bucket.name + " shard"));
  buffers_.use(reduced, copy, program_.tasks[at(copy)].stream);
  buffers_[shard].written_by = copy;
  if (room_ == no_buffer) awaited_ = std::max(awaited_, copy);
  bucket.gradients.clear();
  if (is_first) return;
  const std::int64_t moved = (size_of(input_.gradient_dtype) + 2 * size_of(DType::f32)).count();
  emit_on_host("add", Bytes(elements * moved), bucket.name + " shard", {}, {shard});
}

void ProgramEmitter::update_on_host(const HostUpdate& update) {
  const Bytes parameters = update.elements * size_of(update.dtype);
  const Bytes bytes =
      2 * buffers_[update.state].buffer.bytes + update.elements * size_of(DType::f32) + parameters;
  std::vector<BufferIndex> written = {update.state};
  if (input_.runtime.parameters_on_host) {
    written.insert(written.end(), update.parameters.begin(), update.parameters.end());
  }
  emit_on_host(input_.optimizer, bytes, update.name, update.gradients, written);
  if (input_.runtime.parameters_on_host) return;
  emit_host_copy_of(TaskKind::from_host, parameters, update.name, {update.state},
                    update.parameters);
}

}  // namespace shardsim
