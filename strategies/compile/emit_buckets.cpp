// Gradient buffers of one program: opened before the step, reduced bucket by bucket, read by the
// optimizer, whose flat kind updates a part of each bucket and gathers the parameters afterwards.
#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

#include "base/index.hpp"
#include "strategies/compile/emit_program.hpp"

namespace shardsim {
std::vector<BufferedParameter> ProgramEmitter::buffered_parameters(std::int16_t stage,
                                                                   BufferOrder order) const {
  const Workload& workload = input_.workload;
  std::vector<BufferedParameter> parameters;
  for (const BlockInstance& instance : instances_of(stage)) {
    const std::size_t first = parameters.size();
    for (RegisteredParameter& tensors : listed_parameters(at(instance.block), order)) {
      std::erase_if(tensors,
                    [&](TensorId tensor) { return !input_.step.buffered.contains(tensor); });
      if (tensors.empty()) continue;
      BufferedParameter parameter;
      parameter.instance = instance;
      parameter.axes = input_.step.buffered.at(tensors.front()).axes;
      parameter.of_experts = input_.step.buffered.at(tensors.front()).dealt_out;
      for (const TensorId tensor : tensors) {
        parameter.elements += input_.step.buffered.at(tensor).elements;
        parameter.is_shared |= workload.tensors[at(tensor)].copy_of != no_tensor ||
                               std::any_of(workload.tensors.begin(), workload.tensors.end(),
                                           [&](const Tensor& t) { return t.copy_of == tensor; });
      }
      parameter.tensors = std::move(tensors);
      parameters.push_back(std::move(parameter));
    }
    split_into_experts(parameters, first);
  }
  if (order == BufferOrder::registered) {
    std::stable_partition(parameters.begin(), parameters.end(), [&](const BufferedParameter& one) {
      return is_copied_table(workload, at(one.instance.block), one.tensors.front());
    });
  }
  if (order != BufferOrder::listed) std::reverse(parameters.begin(), parameters.end());
  return parameters;
}

// Of those from `first` on: each expert of a device is a parameter of its own, expert by expert
// where these are modules of their own, else product by product.
void ProgramEmitter::split_into_experts(std::vector<BufferedParameter>& parameters,
                                        std::size_t first) const {
  const auto of_experts = [&](const BufferedParameter& parameter) {
    return input_.step.buffered.at(parameter.tensors.front()).experts > 0;
  };
  const auto begin = std::find_if(parameters.begin() + static_cast<std::ptrdiff_t>(first),
                                  parameters.end(), of_experts);
  if (begin == parameters.end()) return;
  const auto end = std::find_if_not(begin, parameters.end(), of_experts);
  std::vector<BufferedParameter> whole(begin, end);
  const BufferedGradient& one = input_.step.buffered.at(whole.front().tensors.front());
  for (BufferedParameter& parameter : whole) parameter.elements /= one.experts;
  std::vector<BufferedParameter> split;
  if (one.one_by_one) {
    for (std::int64_t e = 0; e < one.experts; ++e) {
      split.insert(split.end(), whole.begin(), whole.end());
    }
  } else {
    for (const BufferedParameter& parameter : whole) {
      split.insert(split.end(), static_cast<std::size_t>(one.experts), parameter);
    }
  }
  parameters.insert(parameters.erase(begin, end), split.begin(), split.end());
}

// Of a block, in the order of its forward pass.
std::vector<RegisteredParameter> ProgramEmitter::listed_parameters(std::size_t block,
                                                                   BufferOrder order) const {
  if (order == BufferOrder::registered) {
    return registered_parameters(input_.workload, block, input_.local_modules);
  }
  if (order == BufferOrder::listed) return used_parameters(input_.workload, block);
  std::vector<RegisteredParameter> made = made_parameters(
      input_.workload, input_.step.blocks[block].backward, block,
      input_.runtime.flat_parameters && input_.runtime.flat_parameters->linear_functions);
  std::reverse(made.begin(), made.end());
  return made;
}

void ProgramEmitter::open_buckets() {
  const std::optional<GradientBuffer>& rule = input_.runtime.reductions.buffer;
  if (!rule || !has_backward(input_.workload)) return;
  for (const std::int16_t stage : input_.schedule.shape.stages_of(rank_)) {
    std::vector<Bucket> buckets = cut_into_buckets(buffered_parameters(stage, rule->order), *rule,
                                                   input_.runtime.flat_optimizer, is_first(stage),
                                                   size_of(input_.gradient_dtype));
    if (input_.runtime.flat_optimizer && rule->closes == BucketCloses::before) {
      cut_at_parts(buckets, buffered_parameters(stage, BufferOrder::listed), *rule,
                   *input_.runtime.flat_optimizer);
    }
    for (Bucket& bucket : buckets) open_bucket(std::move(bucket), stage);
    if (input_.runtime.flat_parameters) open_update_groups(stage);
    open_parts(stage);
  }
  if (gradients_leave(input_.runtime) && !input_.runtime.flat_parameters) open_way_to_host();
  if (rule->kept == BufferKept::room) {
    room_ = open_buffer("room for a gradient bucket", BufferCategory::gradients,
                        rule->bucket_elements * size_of(input_.gradient_dtype));
    buffers_[room_].persistent = true;
  }
  for (OpenBucket& bucket : open_buckets_) {
    if (lies_beside(rule->kept)) open_beside(bucket);
  }
  if (rule->kept == BufferKept::always) {
    set_phase(Phase::forward);
    Kernel zero{"fill", KernelClass::memory, input_.gradient_dtype, Flops(0), Bytes(0)};
    for (OpenBucket& bucket : open_buckets_) {
      open_gradients(bucket);
      buffers_[bucket.gradients.front()].persistent = true;
      if (rule->behind_ddp && !bucket.bucket.axes.empty()) open_ddp_bucket(bucket);
      zero.bytes = buffers_[bucket.gradients.front()].buffer.bytes;
      emit_kernel(zero, bucket.name + " zeroed", {}, bucket.gradients);
    }
  }
}

void ProgramEmitter::open_bucket(Bucket bucket, std::int16_t stage) {
  const std::size_t number = open_buckets_.size();
  OpenBucket open{.bucket = std::move(bucket),
                  .stage = stage,
                  .name = fmt::format("gradient bucket {}", number)};
  std::int64_t state_bytes = 0;
  for (const BufferedParameter& parameter : open.bucket.parameters) {
    for (const TensorId tensor : parameter.tensors) {
      const BufferedGradient& gradient = input_.step.buffered.at(tensor);
      buckets_of_[{tensor, parameter.instance.ordinal}].push_back(number);
      state_bytes = std::max(state_bytes, gradient.state_bytes);
    }
    open.gradients_of_pass += static_cast<std::int64_t>(parameter.tensors.size());
  }
  open.missing =
      open.gradients_of_pass * (reduces_each_microbatch() ? 1 : input_.schedule.shape.microbatches);
  const std::int64_t elements =
      input_.runtime.flat_optimizer ? open.bucket.elements / shards_of(open.bucket) : 0;
  if (gradients_leave(input_.runtime)) {
    open_host_gradients(open, elements);
  } else if (input_.runtime.reductions.buffer->kept == BufferKept::room) {
    open.shard = {open_buffer(open.name + " shard", BufferCategory::gradients,
                              elements * size_of(input_.gradient_dtype))};
    buffers_[open.shard.front()].persistent = true;
  }
  if (input_.runtime.flat_optimizer && !input_.runtime.flat_parameters) {
    const TensorId of = open.bucket.parameters.front().tensors.front();
    const DType as_stored = buffers_.value(input_.step.parameters.at(of).stored).dtype;
    // DeepSpeed updates a copy in fp32 of parameters that are of fp32, too.
    const bool copies = input_.runtime.flat_optimizer->gathers_together && as_stored == DType::f32;
    if (copies) state_bytes += size_of(DType::f32).count();
    open_state(open, elements, Bytes(state_bytes));
    if (shards_of(open.bucket) > 1) to_gather_.push_back(number);
    // Parameters lie in a buffer as gradients do.
    std::int64_t padding = open.bucket.elements;
    for (const BufferedParameter& parameter : open.bucket.parameters) padding -= parameter.elements;
    if (padding > 0) {
      const BufferIndex buffer =
          open_buffer(fmt::format("padding of bucket {}", number), BufferCategory::parameters,
                      padding * size_of(as_stored));
      buffers_[buffer].persistent = true;
    }
  }
  open_buckets_.push_back(std::move(open));
}

BufferIndex ProgramEmitter::open_buffer(const std::string& name, BufferCategory category,
                                        Bytes bytes) {
  Buffer buffer;
  buffer.name = tables_.name(name);
  buffer.category = category;
  buffer.bytes = bytes;
  return buffers_.open_of_program(buffer);
}

bool ProgramEmitter::reduces_each_microbatch() const {
  return input_.runtime.reductions.each_microbatch != ReduceEachMicrobatch::none;
}

// Of a bucket that is reduced: the device's part of it, added to that of the microbatches before.
void ProgramEmitter::keep_shard(OpenBucket& bucket, const std::vector<BufferIndex>& reduced) {
  const std::int64_t elements = bucket.bucket.elements / shards_of(bucket.bucket);
  const Bytes bytes = elements * size_of(input_.gradient_dtype);
  if (gradients_leave(input_.runtime)) return add_on_host(bucket, reduced.front(), elements);
  if (has_parts()) return keep_in_part(bucket, reduced);
  const bool is_first = !std::exchange(bucket.has_shard, true);
  if (bucket.shard.empty()) {
    bucket.shard = {open_buffer(bucket.name + " shard", BufferCategory::gradients, bytes)};
    buffers_[bucket.shard.front()].buffer.allocated_by = static_cast<TaskId>(program_.tasks.size());
  }
  const bool aside = room_ != no_buffer && input_.runtime.reductions.buffer->overlaps;
  emit_copy(is_first ? "copy" : "add", input_.gradient_dtype, (is_first ? 2 : 3) * bytes,
            bucket.name + " shard", reduced, bucket.shard,
            aside ? Stream::reductions : Stream::compute);
  bucket.gradients.clear();
}

std::int64_t ProgramEmitter::shards_of(const Bucket& bucket) const {
  return sharers(*input_.runtime.flat_optimizer, bucket.axes);
}

void ProgramEmitter::set_phase(Phase phase) {
  phase_ = phase;
  layer_ = -1;
}

TaskId ProgramEmitter::emit_on(Task task, const std::string& name,
                               const std::vector<BufferIndex>& read,
                               const std::vector<BufferIndex>& written) {
  after_.clear();
  for (const BufferIndex buffer : read) after_.push_back(buffers_[buffer].written_by);
  for (const BufferIndex buffer : written) {
    after_.push_back(buffers_[buffer].written_by);
    const auto& readers = buffers_[buffer].last_use;
    after_.insert(after_.end(), readers.begin(), readers.end());
  }
  const bool is_compute = task.stream == static_cast<std::uint8_t>(Stream::compute);
  const bool is_on_host = works_on_host(input_.runtime) && task.stream == host_stream();
  if (is_compute || is_on_host) after_.push_back(norm_);
  const bool is_gather = task.stream == static_cast<std::uint8_t>(Stream::gathers);
  const bool brings_part = input_.runtime.parameters_on_host && input_.runtime.flat_parameters &&
                           task.kind == TaskKind::from_host;
  if (is_gather || brings_part) after_.push_back(last_kernel_);
  task.phase = phase_;
  task.name = tables_.name(name);
  task.layer = layer_;
  task.microbatch = microbatch_;
  const TaskId id = add_task(task, after_);
  if (is_compute) last_kernel_ = id;
  for (const BufferIndex buffer : read) buffers_.use(buffer, id, task.stream);
  for (const BufferIndex buffer : written) {
    buffers_.use(buffer, id, task.stream);
    buffers_[buffer].written_by = id;
  }
  return id;
}

TaskId ProgramEmitter::emit_kernel(const Kernel& kernel, const std::string& name,
                                   const std::vector<BufferIndex>& read,
                                   const std::vector<BufferIndex>& written, Stream stream) {
  Task task;
  task.stream = static_cast<std::uint8_t>(stream);
  task.work = tables_.kernel(kernel);
  return emit_on(task, name, read, written);
}

TaskId ProgramEmitter::emit_collective(const Collective& collective, Stream stream,
                                       const std::string& name,
                                       const std::vector<BufferIndex>& written,
                                       const std::vector<BufferIndex>& read) {
  Task task;
  task.kind = TaskKind::collective;
  task.stream = static_cast<std::uint8_t>(stream);
  task.work = tables_.collective(collective);
  return emit_on(task, name, read, written);
}

bool ProgramEmitter::reduces_when_ready() const {
  const GradientBuffer& buffer = *input_.runtime.reductions.buffer;
  const std::size_t stages = input_.schedule.shape.stages_of(rank_).size();
  const bool waits = has_stages_ && buffer.aligns_stages && (stages > 1 || rank_ > 0);
  return buffer.overlaps && !waits;
}

// After a pass that leaves gradients of weights: stages whose turn has come.
void ProgramEmitter::reduce_aligned(const Action& action) {
  if (open_buckets_.empty() || !releases_activations(action.kind)) return;
  const std::int32_t number = ++backward_passes_;
  if (is_last_pass_) through_at_[action.stage] = number;
  const bool overlaps = input_.runtime.reductions.buffer->overlaps && !reduces_when_ready();
  if (!overlaps || input_.schedule.shape.stages_of(rank_).size() == 1) return;
  for (OpenBucket& bucket : open_buckets_) {
    const auto through = through_at_.find(bucket.stage);
    if (through != through_at_.end() && through->second + rank_ == number) reduce_bucket(bucket);
  }
}

void ProgramEmitter::reduce_bucket(OpenBucket& bucket) {
  if (std::exchange(bucket.is_reduced, true)) return;
  if (bucket.beside != no_buffer) list_gradients(bucket);
  const bool stays = !gradients_leave(input_.runtime) && !has_parts() && room_ == no_buffer;
  if (bucket.bucket.axes.empty() && stays) return;
  set_phase(Phase::backward);
  if (bucket.bucket.axes.empty()) return keep_shard(bucket, bucket.gradients);
  const DType dtype = input_.gradient_dtype;
  const Bytes element = size_of(dtype);
  const std::int64_t elements = bucket.bucket.elements;
  fill_room(bucket);
  const std::string reason =
      fmt::format("gradients of a bucket: {}", range_of(bucket.bucket, input_.workload));
  std::vector<BufferIndex> reduced_in = bucket.gradients;
  if (bucket.beside != no_buffer) reduced_in = {bucket.beside};
  const auto reduce = [&](CollectiveKind kind, const AxisList& axes, std::int64_t of) {
    if (axes.empty()) return;
    const Bytes payload = of * element;
    Collective call{kind, axes, {}, {}, dtype, payload, {}, reason, {}, Parallelism::data};
    call.parts = of == elements || of == unpadded(bucket.bucket)
                     ? parts_of(bucket.bucket, input_.workload, element, of)
                     : std::vector<CollectivePart>{{bucket.name, payload}};
    emit_collective(call, Stream::reductions, bucket.name, reduced_in);
  };
  const GradientBuffer& buffer = *input_.runtime.reductions.buffer;
  if (buffer.kept == BufferKept::room) {
    scatter_in_room(bucket);
    return;
  }
  if (!buffer.scatters) {
    std::vector<BucketPiece> pieces = bucket.bucket.pieces;
    // ZeRO 0 puts gradients that lie by themselves side by side for the call (engine.py,
    // allreduce_bucket), ZeRO 1 and 2 what is of several devices' parts (stage_1_and_2.py).
    const bool is_apart = buffer.kept == BufferKept::step && !input_.runtime.flat_optimizer;
    if (pieces.empty()) pieces = {{elements, is_apart}};
    for (const BucketPiece& piece : pieces) {
      const std::string flat = bucket.name + " flat";
      const Bytes bytes = piece.elements * element;
      if (bucket.beside == no_buffer) reduced_in = bucket.gradients;
      if (piece.is_joined) {
        reduced_in = {open_staging(flat, bytes)};
        emit_copy("copy", dtype, 2 * bytes, flat, bucket.gradients, reduced_in, Stream::compute);
      }
      reduce(CollectiveKind::all_reduce, bucket.bucket.axes, piece.elements);
      if (piece.is_joined) {
        emit_copy("copy", dtype, 2 * bytes, flat, reduced_in, bucket.gradients, Stream::compute);
      }
    }
    if (buffer.kept == BufferKept::shards || has_parts()) keep_shard(bucket, bucket.gradients);
    return;
  }
  const std::int64_t shards = shards_of(bucket.bucket);
  const ShardAxes split = split_shards(bucket.bucket.axes, shards);
  reduce(CollectiveKind::reduce_scatter, split.within, elements);
  reduce(CollectiveKind::all_reduce, split.across, elements / shards);
  if (buffer.kept == BufferKept::shards) keep_shard(bucket, bucket.gradients);
}

const std::vector<BufferIndex>& ProgramEmitter::reduced(const OpenBucket& bucket) {
  return bucket.shard.empty() ? bucket.gradients : bucket.shard;
}

}  // namespace shardsim
