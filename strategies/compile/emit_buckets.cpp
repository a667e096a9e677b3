// Gradient buffers of one program: opened before the step, reduced bucket by bucket, read by the
// optimizer, whose flat kind updates a part of each bucket and gathers the parameters afterwards.
//
//   end of a step, as Megatron-Core has it (finalize_model_grads, then the optimizer's step):
//     buckets that are left; sums over the model axes, all in one call; parameters that two stages
//     share; the norm; updates; gathers, or these in the next step's forward pass
#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

#include "base/index.hpp"
#include "strategies/compile/emit_program.hpp"

namespace shardsim {
namespace {

// Of the devices that share the optimizer's state, neighbours on the axes, and the others.
struct ShardAxes {
  AxisList within;
  AxisList across;
};

// The minor part of `axes` that has so many devices.
ShardAxes split_shards(const AxisList& axes, std::int64_t shards) {
  ShardAxes split;
  std::int64_t left = shards;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    const std::int64_t within = std::gcd(left, axis->size);
    left /= within;
    const std::int64_t across = axis->size / within;
    if (across > 1) split.across.insert(split.across.begin(), {axis->axis, axis->pre_size, across});
    if (within > 1) {
      split.within.insert(split.within.begin(), {axis->axis, axis->pre_size * across, within});
    }
  }
  assert(left == 1 && "readers have checked that the shards divide the axes");
  return split;
}

// What of a bucket is whose, layers together; and what its padding takes.
std::vector<CollectivePart> parts_of(const Bucket& bucket, const Workload& workload, Bytes element,
                                     std::int64_t elements) {
  std::vector<CollectivePart> parts;
  std::int64_t padding = elements;
  for (const BufferedParameter& parameter : bucket.parameters) {
    std::string name;
    for (const TensorId tensor : parameter.tensors) {
      name += (name.empty() ? "" : " + ") + workload.tensors[at(tensor)].name;
    }
    const auto same = std::find_if(parts.begin(), parts.end(),
                                   [&](const CollectivePart& part) { return part.tensor == name; });
    const Bytes payload = parameter.elements * element;
    if (same != parts.end()) {
      same->payload += payload;
    } else {
      parts.push_back({name, payload});
    }
    padding -= parameter.elements;
  }
  if (padding > 0) parts.push_back({"padding", padding * element});
  return parts;
}

std::string range_of(const Bucket& bucket, const Workload& workload) {
  const auto name = [&](const BufferedParameter& parameter) -> const std::string& {
    return workload.tensors[at(parameter.tensors.front())].name;
  };
  const std::string& first = name(bucket.parameters.front());
  const std::string& last = name(bucket.parameters.back());
  if (bucket.parameters.size() == 1) return first;
  return fmt::format("{} to {}, {} parameters", first, last, bucket.parameters.size());
}

}  // namespace

std::vector<BufferedParameter> ProgramEmitter::buffered_parameters(std::int16_t stage) const {
  const Workload& workload = input_.workload;
  std::vector<BufferedParameter> parameters;
  for (const BlockInstance& instance : instances_of(stage)) {
    for (RegisteredParameter& tensors : registered_parameters(workload, at(instance.block))) {
      std::erase_if(tensors,
                    [&](TensorId tensor) { return !input_.step.buffered.contains(tensor); });
      if (tensors.empty()) continue;
      BufferedParameter parameter;
      parameter.instance = instance;
      parameter.axes = input_.step.buffered.at(tensors.front()).axes;
      for (const TensorId tensor : tensors) {
        parameter.elements += input_.step.buffered.at(tensor).elements;
        parameter.is_shared |= workload.tensors[at(tensor)].copy_of != no_tensor ||
                               std::any_of(workload.tensors.begin(), workload.tensors.end(),
                                           [&](const Tensor& t) { return t.copy_of == tensor; });
      }
      parameter.tensors = std::move(tensors);
      parameters.push_back(std::move(parameter));
    }
  }
  std::reverse(parameters.begin(), parameters.end());
  return parameters;
}

void ProgramEmitter::open_buckets() {
  const std::optional<GradientBuffer>& rule = input_.runtime.reductions.buffer;
  if (!rule || !has_backward(input_.workload)) return;
  for (const std::int16_t stage : input_.schedule.shape.stages_of(rank_)) {
    for (Bucket& bucket : cut_into_buckets(buffered_parameters(stage), *rule, is_first(stage))) {
      open_bucket(std::move(bucket), stage);
    }
  }
  Kernel zero{"fill", KernelClass::memory, DType::f32, Flops(0), Bytes(0)};
  set_phase(Phase::forward);
  for (const OpenBucket& bucket : open_buckets_) {
    zero.bytes = buffers_[bucket.gradients.front()].buffer.bytes;
    emit_kernel(zero, bucket.name + " zeroed", {}, bucket.gradients);
  }
  const std::optional<FlatOptimizer>& optimizer = input_.runtime.flat_optimizer;
  if (!optimizer || !optimizer->gathers_in_forward) return;
  // In the order in which forward reads them: the next one is the last.
  std::stable_sort(to_gather_.begin(), to_gather_.end(), [&](std::size_t a, std::size_t b) {
    return open_buckets_[a].stage > open_buckets_[b].stage;
  });
}

void ProgramEmitter::open_bucket(Bucket bucket, std::int16_t stage) {
  const DType dtype = input_.gradient_dtype;
  const std::size_t number = open_buckets_.size();
  OpenBucket open{.bucket = std::move(bucket),
                  .stage = stage,
                  .name = fmt::format("gradient bucket {}", number)};
  const auto add_buffer = [&](const std::string& name, BufferCategory category, Bytes bytes) {
    Buffer buffer;
    buffer.name = tables_.name(name);
    buffer.category = category;
    buffer.bytes = bytes;
    return buffers_.open_of_program(buffer);
  };
  open.gradients = {
      add_buffer(open.name, BufferCategory::gradients, open.bucket.elements * size_of(dtype))};
  std::int64_t state_bytes = 0;
  for (const BufferedParameter& parameter : open.bucket.parameters) {
    for (const TensorId tensor : parameter.tensors) {
      const BufferedGradient& gradient = input_.step.buffered.at(tensor);
      buffers_.entry(gradient.main, parameter.instance.ordinal) = open.gradients.front();
      bucket_of_[{tensor, parameter.instance.ordinal}] = number;
      state_bytes = std::max(state_bytes, gradient.state_bytes);
    }
    open.missing += static_cast<std::int64_t>(parameter.tensors.size());
  }
  open.missing *= input_.schedule.shape.microbatches;
  if (input_.runtime.flat_optimizer) {
    const std::int64_t elements = open.bucket.elements / shards_of(open.bucket);
    open.state = {add_buffer(fmt::format("optimizer state of bucket {}", number),
                             BufferCategory::optimizer, Bytes(elements * state_bytes))};
    if (shards_of(open.bucket) > 1) to_gather_.push_back(number);
    // Parameters lie in a buffer as gradients do.
    std::int64_t padding = open.bucket.elements;
    for (const BufferedParameter& parameter : open.bucket.parameters) padding -= parameter.elements;
    const TensorId first = open.bucket.parameters.front().tensors.front();
    const DType stored = buffers_.value(input_.step.parameters.at(first).stored).dtype;
    if (padding > 0) {
      (void)add_buffer(fmt::format("padding of bucket {}", number), BufferCategory::parameters,
                       padding * size_of(stored));
    }
  }
  open_buckets_.push_back(std::move(open));
}

std::int64_t ProgramEmitter::shards_of(const Bucket& bucket) const {
  const std::int64_t devices = Mesh::size_of(bucket.axes);
  const std::int64_t shards = input_.runtime.flat_optimizer->shards;
  return shards == 0 ? devices : std::gcd(shards, devices);
}

std::vector<BufferIndex> ProgramEmitter::parameters_of(const OpenBucket& bucket) {
  std::vector<BufferIndex> parameters;
  for (const BufferedParameter& parameter : bucket.bucket.parameters) {
    for (const TensorId tensor : parameter.tensors) {
      parameters.push_back(
          buffers_.buffer_of(input_.step.parameters.at(tensor).stored, parameter.instance.ordinal));
    }
  }
  return parameters;
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
  if (is_compute) after_.push_back(norm_);
  if (task.stream == static_cast<std::uint8_t>(Stream::gathers)) after_.push_back(last_kernel_);
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
                                   const std::vector<BufferIndex>& written) {
  Task task;
  task.work = tables_.kernel(kernel);
  return emit_on(task, name, read, written);
}

TaskId ProgramEmitter::emit_collective(const Collective& collective, Stream stream,
                                       const std::string& name,
                                       const std::vector<BufferIndex>& buffers) {
  Task task;
  task.kind = TaskKind::collective;
  task.stream = static_cast<std::uint8_t>(stream);
  task.work = tables_.collective(collective);
  return emit_on(task, name, {}, buffers);
}

// `items` of the body are through: which gradients have they left?
void ProgramEmitter::count_written(const BlockPass& pass, std::size_t items, std::int64_t ordinal) {
  if (open_buckets_.empty() || phase_ == Phase::forward) return;
  for (const Write& write : pass.writes) {
    if (write.after != items) continue;
    const auto number = bucket_of_.find({write.parameter, static_cast<std::int32_t>(ordinal)});
    assert(number != bucket_of_.end());
    OpenBucket& bucket = open_buckets_[number->second];
    --bucket.missing;
    if (bucket.missing > 0 || !reduces_when_ready()) continue;
    const Phase phase = phase_;
    const std::int32_t layer = layer_;
    reduce_bucket(bucket);
    phase_ = phase;
    layer_ = layer;
  }
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
  if (std::exchange(bucket.is_reduced, true) || bucket.bucket.axes.empty()) return;
  set_phase(Phase::backward);
  const DType dtype = input_.gradient_dtype;
  const Bytes element = size_of(dtype);
  const std::int64_t elements = bucket.bucket.elements;
  const std::string reason =
      fmt::format("gradients of a bucket: {}", range_of(bucket.bucket, input_.workload));
  const auto reduce = [&](CollectiveKind kind, const AxisList& axes, std::int64_t of) {
    if (axes.empty()) return;
    const Bytes payload = of * element;
    Collective call{kind, axes, {}, {}, dtype, payload, {}, reason, {}};
    call.parts = of == elements ? parts_of(bucket.bucket, input_.workload, element, elements)
                                : std::vector<CollectivePart>{{bucket.name, payload}};
    emit_collective(call, Stream::reductions, bucket.name, bucket.gradients);
  };
  if (!input_.runtime.reductions.buffer->scatters) {
    reduce(CollectiveKind::all_reduce, bucket.bucket.axes, elements);
    return;
  }
  const std::int64_t shards = shards_of(bucket.bucket);
  const ShardAxes split = split_shards(bucket.bucket.axes, shards);
  reduce(CollectiveKind::reduce_scatter, split.within, elements);
  reduce(CollectiveKind::all_reduce, split.across, elements / shards);
}

void ProgramEmitter::finish_gradients() {
  if (open_buckets_.empty() || std::exchange(gradients_are_done_, true)) return;
  const std::vector<std::int16_t> stages = input_.schedule.shape.stages_of(rank_);
  for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage) {
    for (OpenBucket& bucket : open_buckets_) {
      if (bucket.stage == *stage) reduce_bucket(bucket);
    }
  }
  set_phase(Phase::optimizer);
  add_up_over_model();
  add_up_shared();
  if (input_.runtime.clips) take_norm();
}

// Norms' weights under sequence parallelism and the like: each device of the model axes has seen a
// part of the sequence. One call for all of them.
void ProgramEmitter::add_up_over_model() {
  std::map<AxisList, std::pair<std::int64_t, std::vector<BufferIndex>>> sums;
  for (const OpenBucket& bucket : open_buckets_) {
    for (const BufferedParameter& parameter : bucket.bucket.parameters) {
      for (const TensorId tensor : parameter.tensors) {
        const BufferedGradient& gradient = input_.step.buffered.at(tensor);
        if (gradient.model_axes.empty()) continue;
        auto& [elements, buffers] = sums[gradient.model_axes];
        elements += gradient.elements;
        if (buffers.empty() || buffers.back() != bucket.gradients.front()) {
          buffers.push_back(bucket.gradients.front());
        }
      }
    }
  }
  for (const auto& [axes, sum] : sums) {
    const Bytes payload = sum.first * size_of(input_.gradient_dtype);
    const std::string name = "gradients of parameters that are whole on the model axes";
    emit_collective({CollectiveKind::all_reduce,
                     axes,
                     {},
                     {},
                     input_.gradient_dtype,
                     payload,
                     {{name, payload}},
                     name + ", each of a part of the activations",
                     {}},
                    Stream::reductions, name, sum.second);
  }
}

void ProgramEmitter::add_up_shared() {
  for (const std::int16_t stage : input_.schedule.shape.stages_of(rank_)) {
    for (const BlockInstance& instance : instances_of(stage)) {
      emit_items(tables_.block(instance.block).shared, instance.ordinal);
    }
  }
}

// Of a flat optimizer each device has its part of all gradients, so the sum goes over all devices
// of its shards; else over those that hold different parameters.
void ProgramEmitter::take_norm() {
  const Mesh& mesh = input_.mesh;
  AxisList data;
  std::int64_t bytes = 0;
  std::vector<BufferIndex> gradients;
  for (const OpenBucket& bucket : open_buckets_) {
    const bool is_flat = input_.runtime.flat_optimizer.has_value();
    const AxisList& axes = bucket.bucket.axes;
    const AxisList whole = is_flat ? split_shards(axes, shards_of(bucket.bucket)).across : axes;
    for (const AxisRef& axis : whole) {
      if (!contains(data, axis)) data.push_back(axis);
    }
    bytes += bucket.bucket.elements / (is_flat ? shards_of(bucket.bucket) : 1) *
             size_of(input_.gradient_dtype).count();
    gradients.push_back(bucket.gradients.front());
  }
  const Kernel squares{"l2_norm", KernelClass::memory, input_.gradient_dtype, Flops(0),
                       Bytes(bytes)};
  const TaskId local = emit_kernel(squares, "gradient norm", gradients, {});
  norm_ = local;
  AxisList axes;
  for (std::size_t i = 0; i < mesh.axes().size(); ++i) {
    AxisRef axis = mesh.whole(static_cast<int>(i));
    for (const AxisRef& part : data) {
      if (part.axis == axis.axis)
        axis = {axis.axis, part.pre_size * part.size, axis.size / part.size};
    }
    if (axis.size > 1) axes.push_back(axis);
  }
  if (axes.empty()) return;
  const Bytes scalar = size_of(DType::f32);
  const std::string name = "gradient norm";
  Collective sum{CollectiveKind::all_reduce,
                 axes,
                 {},
                 {},
                 DType::f32,
                 scalar,
                 {{name, scalar}},
                 "the norm of all gradients, by which they are clipped",
                 {}};
  if (has_stages_) {  // the programs of all stages join in
    sum.groups = mesh.groups(axes);
    sum.axes.clear();
  }
  Task task;
  task.kind = TaskKind::collective;
  task.stream = static_cast<std::uint8_t>(Stream::reductions);
  task.phase = phase_;
  task.work = tables_.collective(sum);
  task.name = tables_.name(name);
  after_ = {local};
  norm_ = add_task(task, after_);
}

void ProgramEmitter::update_bucket(const OpenBucket& bucket) {
  set_phase(Phase::optimizer);
  const std::int64_t elements = bucket.bucket.elements / shards_of(bucket.bucket);
  const TensorId first = bucket.bucket.parameters.front().tensors.front();
  const Value& parameter = buffers_.value(input_.step.parameters.at(first).stored);
  Kernel update{input_.optimizer, KernelClass::memory, DType::f32, Flops(0), Bytes(0)};
  update.flops = Flops(static_cast<double>(elements) * input_.step.buffered.at(first).update_flops);
  // The state read and written, gradients read, parameters written.
  update.bytes = 2 * buffers_[bucket.state.front()].buffer.bytes +
                 elements * (size_of(input_.gradient_dtype) + size_of(parameter.dtype));
  std::vector<BufferIndex> written = parameters_of(bucket);
  written.push_back(bucket.state.front());
  emit_kernel(update, fmt::format("{} update", bucket.name), bucket.gradients, written);
}

// What no forward pass of the next step will gather.
void ProgramEmitter::gather_buckets() {
  const std::optional<FlatOptimizer>& optimizer = input_.runtime.flat_optimizer;
  if (!optimizer || optimizer->gathers_in_forward) return;
  std::reverse(to_gather_.begin(), to_gather_.end());
  set_phase(Phase::optimizer);
  while (!to_gather_.empty()) gather_next_bucket();
}

// Before a module computes: the buckets of its parameters. What it gathers of activations is its
// own.
void ProgramEmitter::gather_buckets_for(const ResolvedPass& pass, std::size_t item,
                                        std::int64_t ordinal) {
  if (to_gather_.empty() || phase_ != Phase::forward) return;
  if (!input_.runtime.flat_optimizer->gathers_in_forward) return;
  const auto gathers = [&](std::size_t k) {
    const Item& candidate = *pass.body[k].item;
    return candidate.kind == TaskKind::collective &&
           candidate.collective.kind == CollectiveKind::all_gather;
  };
  while (gathers(item) && item + 1 < pass.body.size()) ++item;
  for (const ValueId operand : pass.body[item].item->operands) gather_bucket_of(operand, ordinal);
}

// If it has not been asked for, and the one behind it in the same stage.
void ProgramEmitter::gather_bucket_of(ValueId parameter, std::int64_t ordinal) {
  const auto number = bucket_of_.find(
      {buffers_.value(parameter).tensor, static_cast<std::int32_t>(ordinal)});
  if (number == bucket_of_.end()) return;
  const std::int16_t stage = open_buckets_[number->second].stage;
  if (std::exchange(open_buckets_[number->second].is_gathered, true)) return;
  const std::int32_t layer = layer_;
  if (std::count(to_gather_.begin(), to_gather_.end(), number->second) > 0) {
    while (to_gather_.back() != number->second) gather_next_bucket();
    gather_next_bucket();
  }
  if (!to_gather_.empty() && open_buckets_[to_gather_.back()].stage == stage) gather_next_bucket();
  layer_ = layer;
}

void ProgramEmitter::gather_next_bucket() {
  if (to_gather_.empty()) return;
  const OpenBucket& bucket = open_buckets_[to_gather_.back()];
  to_gather_.pop_back();
  layer_ = -1;
  const TensorId first = bucket.bucket.parameters.front().tensors.front();
  const DType dtype = buffers_.value(input_.step.parameters.at(first).stored).dtype;
  const std::int64_t elements = bucket.bucket.elements;
  const Bytes payload = elements * size_of(dtype);
  const ShardAxes split = split_shards(bucket.bucket.axes, shards_of(bucket.bucket));
  emit_collective({CollectiveKind::all_gather,
                   split.within,
                   {},
                   {},
                   dtype,
                   payload,
                   parts_of(bucket.bucket, input_.workload, size_of(dtype), elements),
                   fmt::format("parameters of a bucket, updated in shards: {}",
                               range_of(bucket.bucket, input_.workload)),
                   {}},
                  Stream::gathers, bucket.name + " parameters", parameters_of(bucket));
}

}  // namespace shardsim
