// What is done with gradients in buffers once backward is through, and the flat optimizer.
//
//   as Megatron-Core has it (finalize_model_grads, then its optimizer): buckets that are left;
//   sums over the model axes, all in one call; parameters that two stages share; how many tokens
//   there were; whether all are finite; the norm; updates
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/index.hpp"
#include "strategies/compile/emit_program.hpp"
#include "strategies/layout/expert_layout.hpp"

namespace shardsim {

void ProgramEmitter::finish_gradients() {
  if (open_buckets_.empty() || std::exchange(gradients_are_done_, true)) return;
  std::vector<std::int16_t> stages = input_.schedule.shape.stages_of(rank_);
  // Those that nothing has begun before, in turn (finalize_model_grads.py).
  if (input_.runtime.reductions.buffer->overlaps) std::reverse(stages.begin(), stages.end());
  for (const std::int16_t stage : stages) {
    for (OpenBucket& bucket : open_buckets_) {
      if (bucket.stage == stage) reduce_bucket(bucket);
    }
  }
  for (const OpenBucket& bucket : open_buckets_) {
    const bool is_reduced = bucket.beside != no_buffer && !bucket.bucket.axes.empty();
    if (is_reduced) copy_out_of(bucket);
  }
  close_step_rooms();
  set_phase(Phase::optimizer);
  add_up_over_model();
  add_up_shared();
  add_up_routing();
  scale_by_tokens();
  if (input_.runtime.flat_parameters) {
    take_norms_of_groups();
  } else {
    take_norm();
  }
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
        elements += gradient.elements / std::max<std::int64_t>(gradient.experts, 1);
        if (buffers.empty() || buffers.back() != reduced(bucket).back()) {
          buffers.insert(buffers.end(), reduced(bucket).begin(), reduced(bucket).end());
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
                     {},
                     Parallelism::tensor},
                    Stream::reductions, name, sum.second);
  }
}

void ProgramEmitter::add_up_shared() {
  for (const std::int16_t stage : input_.schedule.shape.stages_of(rank_)) {
    for (const BlockInstance& instance : instances_of(stage)) {
      block_ = instance.block;
      emit_items(tables_.block(instance.block).shared, instance.ordinal);
    }
  }
}

// Biases that keep the routing even are moved by how many rows each expert has had: of all layers
// in one call, on all devices of the stage (Megatron-Core, _update_router_expert_bias).
void ProgramEmitter::add_up_routing() {
  if (!input_.updates_routing) return;
  std::int64_t experts = 0;
  for (const std::int16_t stage : input_.schedule.shape.stages_of(rank_)) {
    for (const BlockInstance& instance : instances_of(stage)) {
      experts += biased_experts(input_.workload, instance.block);
    }
  }
  AxisList axes;
  for (std::size_t i = 0; i < input_.mesh.axes().size(); ++i) {
    const AxisRef axis = input_.mesh.whole(static_cast<int>(i));
    if (axis.size > 1 && input_.mesh.name_of(axis) != input_.stages_axis) axes.push_back(axis);
  }
  if (experts == 0 || axes.empty()) return;
  const Bytes payload = experts * size_of(DType::f32);
  const std::string name = "rows of each expert";
  emit_collective({CollectiveKind::all_reduce,
                   axes,
                   {},
                   {},
                   DType::f32,
                   payload,
                   {{name, payload}},
                   name + ", by which the biases of routers are moved",
                   {},
                   Parallelism::expert},
                  Stream::reductions, name, {});
}

// The last stage knows how many tokens the loss is of, and tells the others; devices that see
// different tokens add the numbers up; gradients are scaled by what comes of it (Megatron-Core,
// finalize_model_grads with calculate_per_token_loss).
void ProgramEmitter::scale_by_tokens() {
  if (!input_.runtime.counts_tokens) return;
  const std::string name = "number of tokens";
  const Bytes scalar = size_of(DType::i32);
  const auto emit_call = [&](CollectiveKind kind, const AxisList& axes,
                             std::vector<std::vector<std::int64_t>> groups) {
    norm_ = reduce_behind(last_kernel_, name,
                          {kind,
                           axes,
                           std::move(groups),
                           {},
                           DType::i32,
                           scalar,
                           {{name, scalar}},
                           name + ", by which gradients are scaled",
                           {},
                           Parallelism::scalars});
  };
  if (has_stages_) {
    const AxisRef stages = input_.mesh.whole(*input_.mesh.find(input_.stages_axis));
    auto columns = input_.mesh.groups({stages});
    for (auto& column : columns) std::reverse(column.begin(), column.end());
    emit_call(CollectiveKind::broadcast, {}, std::move(columns));
  }
  if (!input_.data_axes.empty()) emit_call(CollectiveKind::all_reduce, input_.data_axes, {});
  std::vector<BufferIndex> gradients;
  Bytes bytes{0};
  for (const OpenBucket& bucket : open_buckets_) {
    gradients.insert(gradients.end(), reduced(bucket).begin(), reduced(bucket).end());
  }
  for (const BufferIndex gradient : gradients) bytes += buffers_[gradient].buffer.bytes;
  const std::int64_t elements = bytes.count() / size_of(input_.gradient_dtype).count();
  emit_kernel({"multiply", KernelClass::memory, input_.gradient_dtype,
               Flops(static_cast<double>(elements)), 2 * bytes},
              "gradients by tokens", {}, gradients);
}

// Of a flat optimizer each device has its part of all gradients, so sums go over all devices of its
// shards; else over those that hold different parameters.
std::vector<Parted> ProgramEmitter::gradients_by_parts() const {
  const Mesh& mesh = input_.mesh;
  const bool is_flat = input_.runtime.flat_optimizer.has_value();
  std::vector<Parted> all;
  for (const OpenBucket& bucket : open_buckets_) {
    const AxisList& axes = bucket.bucket.axes;
    const std::int64_t shards = is_flat ? shards_of(bucket.bucket) : 1;
    const AxisList whole = is_flat ? split_shards(axes, shards).across : axes;
    AxisList parted;
    for (std::size_t i = 0; i < mesh.axes().size(); ++i) {
      AxisRef axis = mesh.whole(static_cast<int>(i));
      for (const AxisRef& part : whole) {
        if (part.axis == axis.axis) {
          axis = {axis.axis, part.pre_size * part.size, axis.size / part.size};
        }
      }
      if (axis.size > 1) parted.push_back(axis);
    }
    auto same =
        std::find_if(all.begin(), all.end(), [&](const Parted& one) { return one.axes == parted; });
    if (same == all.end()) same = all.insert(all.end(), {parted, 0, {}});
    same->bytes += bucket.bucket.elements / shards * size_of(input_.gradient_dtype).count();
    same->gradients.insert(same->gradients.end(), reduced(bucket).begin(), reduced(bucket).end());
  }
  return all;
}

// Megatron-Core's optimizers copy what they update of gradients that are no fp32, and nobody frees
// the copies before the next step's zero_grad (core/optimizer/distrib_optimizer.py and
// optimizer.py, _copy_model_grads_to_main_grads).
void ProgramEmitter::widen_gradients() {
  if (!input_.widens_gradients || open_buckets_.empty() || gradients_leave(input_.runtime)) return;
  std::int64_t elements = 0;
  std::vector<BufferIndex> gradients;
  for (const OpenBucket& bucket : open_buckets_) {
    elements += input_.runtime.flat_optimizer ? bucket.bucket.elements / shards_of(bucket.bucket)
                                              : bucket.bucket.elements;
    gradients.insert(gradients.end(), reduced(bucket).begin(), reduced(bucket).end());
  }
  const Bytes wide = elements * size_of(DType::f32);
  const BufferIndex copies = open_buffer("gradients in fp32", BufferCategory::temporaries, wide);
  if (input_.runtime.wide_gradients_end) {
    wide_ = copies;
  } else {
    buffers_[copies].persistent = true;
  }
  buffers_[copies].buffer.allocated_by = static_cast<TaskId>(program_.tasks.size());
  emit_kernel({"cast", KernelClass::memory, input_.gradient_dtype, Flops(0),
               wide + elements * size_of(input_.gradient_dtype)},
              "gradients in fp32", gradients, {copies});
}

void ProgramEmitter::take_norm() {
  widen_gradients();
  const std::vector<Parted> all = gradients_by_parts();
  // DeepSpeed asks for it of 16 bits alone.
  const auto& optimizer = input_.runtime.flat_optimizer;
  const bool is_wide =
      optimizer && optimizer->gathers_together && input_.gradient_dtype == DType::f32;
  if (input_.runtime.checks_overflow && !is_wide) {
    for (const Parted& one : all) {
      sum_up({"is_finite", "overflow check", "whether a gradient of any device is not finite",
              DType::u8},
             Bytes(one.bytes), one.gradients, one.axes);
    }
  }
  if (!input_.clips && !input_.runtime.reports_norm) return;
  Bytes beside{0};  // a piece in fp64 (get_grad_norm_direct)
  for (const auto& [axes, part] : parts_) {
    beside = std::max(beside, part.largest * size_of(DType::f64));
  }
  for (const Parted& one : all) {
    sum_up({"l2_norm", "gradient norm", "the norm of all gradients, by which they are clipped",
            DType::f32, beside},
           Bytes(one.bytes), one.gradients, one.axes);
  }
  widen_parts();
  average_norm();
  if (input_.clips && !gradients_leave(input_.runtime)) scale_by_norm(all);
}

void ProgramEmitter::average_norm() {
  if (!input_.runtime.averages_norm || input_.gradient_dtype != DType::f32) return;
  if (input_.data_axes.empty()) return;
  const std::string name = "gradient norm";
  const Bytes scalar = size_of(DType::f32);
  norm_ = reduce_behind(norm_, name,
                        {CollectiveKind::all_reduce,
                         input_.data_axes,
                         {},
                         {},
                         DType::f32,
                         scalar,
                         {{name, scalar}},
                         "the norm of all gradients, averaged over devices that have the same",
                         {},
                         Parallelism::scalars});
}

void ProgramEmitter::scale_by_norm(const std::vector<Parted>& all) {
  std::int64_t bytes = 0;
  std::vector<BufferIndex> gradients;
  for (const Parted& one : all) {
    bytes += one.bytes;
    gradients.insert(gradients.end(), one.gradients.begin(), one.gradients.end());
  }
  const DType dtype = has_parts() ? DType::f32 : input_.gradient_dtype;
  if (has_parts()) {
    bytes = 0;
    gradients.clear();
    for (const auto& [axes, part] : parts_) {
      bytes += part.elements * size_of(dtype).count();
      gradients.push_back(part.wide);
    }
  }
  const std::int64_t elements = bytes / size_of(dtype).count();
  const Kernel scaling{"multiply", KernelClass::memory, dtype, Flops(static_cast<double>(elements)),
                       Bytes(2 * bytes)};
  emit_kernel(scaling, "gradient clipping", {}, gradients);
}

// One number of all gradients: of those here, then of all devices of `axes`.
void ProgramEmitter::sum_up(const OfAllGradients& number, Bytes bytes,
                            const std::vector<BufferIndex>& gradients, const AxisList& axes) {
  const std::string name(number.name);
  if (gradients_leave(input_.runtime)) {
    norm_ = emit_on_host(number.op, bytes, name, gradients, {});
  } else {
    const Kernel kernel{std::string(number.op), KernelClass::memory, input_.gradient_dtype,
                        Flops(0), bytes};
    std::vector<BufferIndex> written;
    if (number.beside.count() > 0) written.push_back(open_staging(name, number.beside));
    norm_ = emit_kernel(kernel, name, gradients, written);
  }
  if (axes.empty()) return;
  const Bytes scalar = size_of(number.dtype);
  Collective sum{CollectiveKind::all_reduce,
                 axes,
                 {},
                 {},
                 number.dtype,
                 scalar,
                 {{name, scalar}},
                 std::string(number.reason),
                 {},
                 Parallelism::scalars};
  if (has_stages_) {  // the programs of all stages join in
    sum.groups = input_.mesh.groups(axes);
    sum.axes.clear();
  }
  norm_ = reduce_behind(norm_, name, sum);
}

TaskId ProgramEmitter::reduce_behind(TaskId before, const std::string& name,
                                     const Collective& collective) {
  Task task;
  task.kind = TaskKind::collective;
  task.stream = static_cast<std::uint8_t>(Stream::reductions);
  task.phase = phase_;
  task.work = tables_.collective(collective);
  task.name = tables_.name(name);
  after_ = {before};
  return add_task(task, after_);
}

void ProgramEmitter::update_bucket(const OpenBucket& bucket) {
  set_phase(Phase::optimizer);
  const std::int64_t elements =
      bucket.bucket.elements / shards_of(bucket.bucket) - bucket.elements_on_host;
  const TensorId first = bucket.bucket.parameters.front().tensors.front();
  const Value& parameter = buffers_.value(input_.step.parameters.at(first).stored);
  if (gradients_leave(input_.runtime)) {
    update_on_host({.name = fmt::format("{} update", bucket.name),
                    .elements = elements,
                    .state = bucket.state.front(),
                    .gradients = reduced(bucket),
                    .parameters = parameters_of(bucket),
                    .dtype = parameter.dtype});
    return;
  }
  Kernel update{input_.optimizer, KernelClass::memory, DType::f32, Flops(0), Bytes(0)};
  update.flops = Flops(static_cast<double>(elements) * input_.step.buffered.at(first).update_flops);
  // The state read and written, gradients read, parameters written; these are copied from masters
  // by a kernel of its own (Megatron's _copy_main_params_to_model_params, DeepSpeed's step).
  const DType gradient = has_parts() ? DType::f32 : input_.gradient_dtype;
  update.bytes = 2 * buffers_[bucket.state.front()].buffer.bytes +
                 elements * (size_of(gradient) + size_of(parameter.dtype));
  if (parameter.dtype != DType::f32) update.bytes += elements * size_of(DType::f32);
  std::vector<BufferIndex> written = parameters_of(bucket);
  written.push_back(bucket.state.front());
  emit_kernel(update, fmt::format("{} update", bucket.name), updated_from(bucket), written);
}

}  // namespace shardsim
