// Gradients and the optimizer of parameters in flat parts: buckets that are filled by turns in one
// room are reduce-scattered; the parts of gradients stay until the next step; the optimizer updates
// groups of parameters, as DeepSpeed's ZeRO 3 does its sub-groups:
//
//   a bucket   put in the order of the devices' parts, but for one parameter that they divide;
//              reduce-scattered, added to the parts
//   the norm   of each group a sum of one fp64 number over all devices
//   a group    its gradients in fp32, for a while; the update of its parts
//
// Source: deepspeed/runtime/zero/stage3.py and runtime/comm/coalesced_collectives.py (0.19.8).
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/index.hpp"
#include "strategies/compile/emit_program.hpp"

namespace shardsim {
namespace {

// Before one more the host waits for the oldest (max_param_reduce_events is 2, and one is issued).
constexpr std::size_t most_reductions_under_way = 3;

}  // namespace

// In the order of the list; one is full with the parameter that takes it to the limit.
void ProgramEmitter::open_update_groups(std::int16_t stage) {
  std::map<ParameterInstance, std::size_t> number_of;
  for (std::size_t p = 0; p < walk_.parameters.size(); ++p) number_of[walk_.parameters[p]] = p;
  const std::int64_t limit = input_.runtime.flat_optimizer->group_elements;
  bool is_full = true;
  for (const BufferedParameter& parameter : buffered_parameters(stage, BufferOrder::listed)) {
    for (const TensorId tensor : parameter.tensors) {
      if (std::exchange(is_full, false)) update_groups_.emplace_back();
      UpdateGroup& group = update_groups_.back();
      const std::size_t number = number_of.at({tensor, parameter.instance.ordinal});
      group.parameters.push_back(number);
      group.elements += flat_[number].part;
      is_full = group.elements >= limit;
    }
  }
  for (UpdateGroup& group : update_groups_) {
    std::int64_t bytes = 0;
    for (const std::size_t p : group.parameters) {
      bytes += flat_[p].part * input_.step.buffered.at(walk_.parameters[p].first).state_bytes;
      // Parameters of fp32 have a copy in fp32, too, which is what is updated.
      const DType stored = buffers_.value(flat_[p].value).dtype;
      if (stored == DType::f32) bytes += flat_[p].part * size_of(stored).count();
    }
    group.state =
        open_buffer("optimizer state of a group", BufferCategory::optimizer, Bytes(bytes));
    buffers_[group.state].persistent = true;
    buffers_[group.state].buffer.on_host = input_.runtime.optimizer_on_host;
  }
}

void ProgramEmitter::scatter_in_room(OpenBucket& bucket) {
  const DType dtype = input_.gradient_dtype;
  const std::int64_t elements = bucket.bucket.elements;
  const Bytes payload = elements * size_of(dtype);
  const Stream stream =
      input_.runtime.reductions.buffer->overlaps ? Stream::reductions : Stream::compute;
  BufferIndex flat = bucket.gradients.front();
  if (bucket.bucket.parameters.size() > 1 || unpadded(bucket.bucket) != elements) {
    flat = open_staging(bucket.name + " by devices", payload);
    emit_copy("copy", dtype, 2 * payload, bucket.name + " by devices", bucket.gradients, {flat},
              stream);
  }
  emit_collective(
      {CollectiveKind::reduce_scatter,
       bucket.bucket.axes,
       {},
       {},
       dtype,
       payload,
       parts_of(bucket.bucket, input_.workload, size_of(dtype), elements),
       fmt::format("gradients of a bucket: {}", range_of(bucket.bucket, input_.workload)),
       {},
       Parallelism::data},
      Stream::reductions, bucket.name, {flat});
  keep_shard(bucket, {flat});
  reductions_in_room_.push_back(static_cast<TaskId>(program_.tasks.size()) - 1);
  const std::size_t count = reductions_in_room_.size();
  if (count <= most_reductions_under_way) return;
  awaited_ = std::max(awaited_, reductions_in_room_[count - 1 - most_reductions_under_way]);
}

std::vector<BufferIndex> ProgramEmitter::gradients_of(const UpdateGroup& group) const {
  std::set<BufferIndex> gradients;
  for (const std::size_t p : group.parameters) {
    for (const std::size_t number : buckets_of_.at(walk_.parameters[p])) {
      gradients.insert(reduced(open_buckets_[number]).front());
    }
  }
  return {gradients.begin(), gradients.end()};
}

void ProgramEmitter::take_norms_of_groups() {
  AxisList axes;
  for (std::size_t i = 0; i < input_.mesh.axes().size(); ++i) {
    const AxisRef axis = input_.mesh.whole(static_cast<int>(i));
    if (axis.size > 1) axes.push_back(axis);
  }
  // Of fp16, whose loss is scaled: whether a gradient is not finite.
  if (input_.gradient_dtype == DType::f16) {
    Bytes bytes{0};
    std::vector<BufferIndex> gradients;
    for (const UpdateGroup& group : update_groups_) {
      bytes += group.elements * size_of(input_.gradient_dtype);
      const std::vector<BufferIndex> more = gradients_of(group);
      gradients.insert(gradients.end(), more.begin(), more.end());
    }
    sum_up({"is_finite", "overflow check", "whether a gradient of any device is not finite",
            DType::u8},
           bytes, gradients, input_.data_axes);
  }
  for (const UpdateGroup& group : update_groups_) {
    // On the host gradients are in fp32, and so is their norm.
    const bool on_host = input_.runtime.optimizer_on_host;
    const DType gradient = on_host ? DType::f32 : input_.gradient_dtype;
    if (!input_.clips) continue;
    std::int64_t largest = 0;  // a part in fp64 (get_grad_norm_direct)
    for (const std::size_t p : group.parameters) largest = std::max(largest, flat_[p].part);
    sum_up(
        {"l2_norm", "gradient norm", "the norm of a group's gradients, by which they are clipped",
         on_host ? DType::f32 : DType::f64, largest * size_of(DType::f64)},
        group.elements * size_of(gradient), gradients_of(group), axes);
  }
}

void ProgramEmitter::update_group(const UpdateGroup& group, std::size_t number) {
  set_phase(Phase::optimizer);
  const std::string name = fmt::format("group {}", number);
  const Bytes wide = group.elements * size_of(DType::f32);
  HostUpdate on_host{.name = name + " update",
                     .elements = group.elements,
                     .state = group.state,
                     .gradients = gradients_of(group)};
  for (const std::size_t p : group.parameters) on_host.parameters.push_back(flat_[p].stored);
  on_host.dtype = buffers_.value(flat_[group.parameters.front()].value).dtype;
  if (input_.runtime.optimizer_on_host) return update_on_host(on_host);
  std::vector<BufferIndex> gradients = on_host.gradients;
  if (input_.gradient_dtype != DType::f32) {
    const BufferIndex cast = open_buffer(name + " gradients", BufferCategory::temporaries, wide);
    buffers_[cast].buffer.allocated_by = static_cast<TaskId>(program_.tasks.size());
    emit_copy("cast", input_.gradient_dtype, wide + group.elements * size_of(input_.gradient_dtype),
              name + " gradients", gradients, {cast}, Stream::compute);
    gradients = {cast};
  }
  Kernel update{input_.optimizer, KernelClass::memory, DType::f32, Flops(0), Bytes(0)};
  // The state read and written, gradients read, parameters written.
  update.bytes = 2 * buffers_[group.state].buffer.bytes + wide;
  std::vector<BufferIndex> written = {group.state};
  for (const std::size_t p : group.parameters) {
    const FlatParameter& flat = flat_[p];
    const double flops = input_.step.buffered.at(walk_.parameters[p].first).update_flops;
    update.flops += Flops(static_cast<double>(flat.part) * flops);
    update.bytes += flat.part * size_of(buffers_.value(flat.value).dtype);
    if (!input_.runtime.parameters_on_host) written.push_back(flat.stored);
  }
  if (!input_.runtime.parameters_on_host) {
    emit_kernel(update, on_host.name, gradients, written);
    return;
  }
  const Bytes narrow = group.elements * size_of(on_host.dtype);
  written.push_back(open_staging(name + " parameters", narrow));
  emit_kernel(update, on_host.name, gradients, written);
  emit_host_copy_of(TaskKind::to_host, narrow, on_host.name, {written.back()}, on_host.parameters);
}

}  // namespace shardsim
