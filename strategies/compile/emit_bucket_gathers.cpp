// Parameters that a flat optimizer has updated in parts of buckets: gathered bucket by bucket in
// the next forward pass, one ahead of the module that reads it, or after the step.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/index.hpp"
#include "strategies/compile/emit_program.hpp"

namespace shardsim {
namespace {

bool are_of_one_buffer(const OpenBucket& one, const OpenBucket& other) {
  return one.stage == other.stage && one.of_experts() == other.of_experts() &&
         one.bucket.axes == other.bucket.axes;
}

}  // namespace

// What no forward pass of the next step will gather.
void ProgramEmitter::gather_buckets() {
  const std::optional<FlatOptimizer>& optimizer = input_.runtime.flat_optimizer;
  if (!optimizer || optimizer->gathers_in_forward) return;
  std::reverse(to_gather_.begin(), to_gather_.end());
  set_phase(Phase::optimizer);
  if (!optimizer->gathers_together) {
    // Parameters of experts have an optimizer of their own, and each of the two gathers all buffers
    // (megatron/core/optimizer/distrib_optimizer.py, step_with_ready_grads).
    const std::vector<std::size_t> all = to_gather_;
    const bool has_experts =
        std::any_of(open_buckets_.begin(), open_buckets_.end(),
                    [](const OpenBucket& bucket) { return bucket.of_experts(); });
    for (int optimizers = has_experts ? 2 : 1; optimizers > 0; --optimizers) {
      to_gather_ = all;
      while (!to_gather_.empty()) gather_next_bucket();
    }
    return;
  }
  // One call for those that are gathered over the same devices.
  while (!to_gather_.empty()) {
    const AxisList axes = open_buckets_[to_gather_.back()].bucket.axes;
    OpenBucket all;
    all.bucket.axes = axes;
    all.name = "updated";
    std::erase_if(to_gather_, [&](std::size_t number) {
      const Bucket& bucket = open_buckets_[number].bucket;
      if (bucket.axes != axes) return false;
      all.bucket.parameters.insert(all.bucket.parameters.end(), bucket.parameters.begin(),
                                   bucket.parameters.end());
      all.bucket.elements += unpadded(bucket);
      return true;
    });
    const std::int64_t multiple = input_.runtime.reductions.buffer->bucket_multiple;
    all.bucket.elements = (all.bucket.elements + multiple - 1) / multiple * multiple;
    emit_gather(all);
  }
}

// Before a module computes: the buckets of its parameters. What it gathers of activations before is
// its own, but not what the module before has made in parts.
void ProgramEmitter::gather_buckets_for(const ResolvedPass& pass, std::size_t item,
                                        std::int64_t ordinal) {
  if (to_gather_.empty() || phase_ != Phase::forward) return;
  if (!input_.runtime.flat_optimizer->gathers_in_forward) return;
  const auto gathers = [&](std::size_t k) {
    const Item& candidate = *pass.body[k].item;
    return candidate.kind == TaskKind::collective &&
           !std::holds_alternative<RowsExchanged>(candidate.reason) &&
           candidate.collective.kind == CollectiveKind::all_gather;
  };
  const std::size_t first = item;
  while (gathers(item) && item + 1 < pass.body.size()) ++item;
  const Item& module = *pass.body[item].item;
  const auto is_read = [&](ValueId value) {
    return std::find(module.operands.begin(), module.operands.end(), value) !=
           module.operands.end();
  };
  const std::vector<ValueId>& made = pass.body[first].item->results;
  if (first != item && std::none_of(made.begin(), made.end(), is_read)) return;
  for (const ValueId operand : module.operands) gather_buckets_of(operand, ordinal);
}

// If they have not been asked for, and of each the one behind it in the same buffer; all of the
// buffer where they are one group.
void ProgramEmitter::gather_buckets_of(ValueId parameter, std::int64_t ordinal) {
  const auto numbers =
      buckets_of_.find({buffers_.value(parameter).tensor, static_cast<std::int32_t>(ordinal)});
  if (numbers == buckets_of_.end()) return;
  const std::int32_t layer = layer_;
  // Backwards: the first that forward reads lies last in the buffer.
  for (auto number = numbers->second.rbegin(); number != numbers->second.rend(); ++number) {
    if (std::exchange(open_buckets_[*number].is_gathered, true)) continue;
    if (are_one_group(open_buckets_[*number].stage)) {
      for (std::size_t n = 0; n < open_buckets_.size(); ++n) {
        if (are_of_one_buffer(open_buckets_[n], open_buckets_[*number])) gather_unless_asked(n);
      }
      continue;
    }
    gather_unless_asked(*number);
    if (const auto next = next_of(*number)) gather_unless_asked(*next);
  }
  layer_ = layer;
}

// Buckets of a rank's second and further stages are one group, in order
// (distributed_data_parallel.py, disable_bucketing; param_and_grad_buffer.py, partition_buckets).
bool ProgramEmitter::are_one_group(std::int16_t stage) const {
  return input_.runtime.reductions.buffer->buckets_of_first_stage_alone &&
         stage != input_.schedule.shape.stages_of(rank_).front();
}

// Of the same buffer: the next one that forward reads.
std::optional<std::size_t> ProgramEmitter::next_of(std::size_t number) const {
  const OpenBucket& bucket = open_buckets_[number];
  while (number-- > 0) {
    if (are_of_one_buffer(open_buckets_[number], bucket)) return number;
  }
  return std::nullopt;
}

void ProgramEmitter::gather_unless_asked(std::size_t number) {
  if (std::erase(to_gather_, number) > 0) emit_gather(open_buckets_[number]);
}

void ProgramEmitter::gather_next_bucket() {
  if (to_gather_.empty()) return;
  const OpenBucket& bucket = open_buckets_[to_gather_.back()];
  to_gather_.pop_back();
  emit_gather(bucket);
}

void ProgramEmitter::emit_gather(const OpenBucket& bucket) {
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
                   {},
                   Parallelism::data},
                  Stream::gathers, bucket.name + " parameters", parameters_of(bucket));
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

}  // namespace shardsim
