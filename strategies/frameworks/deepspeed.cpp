#include "strategies/frameworks/deepspeed.hpp"

#include <string>
#include <utility>

#include "base/json.hpp"
#include "strategies/buffer_keys.hpp"

namespace shardsim {
namespace {

constexpr std::int64_t reduce_bucket_size = 500'000'000;
// Of the flat group's start and size, nccl_start_alignment_factor.
constexpr std::int64_t alignment = 2;

void begin_deepspeed(const JsonReader& strategy, const Mesh& mesh, const AxisRoles& roles,
                     Strategy& options) {
  const auto stage = strategy.is_object() ? strategy.find("zero_stage") : std::nullopt;
  if (stage && stage->is_number() && stage->number() == 3) {
    stage->fail("3 shards parameters, which this version has as \"fsdp\", \"fsdp1\" and \"fsdp2\"");
  }
  options.splits_model = has_axis(mesh, roles, AxisRole::model);
  options.runtime.reductions.each_microbatch = ReduceEachMicrobatch::none;
  read_kernels(strategy, options);
}

void finish_deepspeed(const JsonReader& strategy, const Mesh& mesh, Strategy& options) {
  const int stage = std::exchange(options.zero_stage, 0);
  GradientBuffer buffer;
  buffer.order = BufferOrder::made;
  buffer.kept = stage == 2 ? BufferKept::shards : BufferKept::step;
  buffer.bucket_elements = reduce_bucket_size;
  if (const auto elements =
          strategy.is_object() ? strategy.find("bucket_elements") : std::nullopt) {
    buffer.bucket_elements = elements->integer(0, std::int64_t{1} << 40);
  }
  // Stage 0 goes through a list of gradients once backward is through.
  buffer.closes = stage == 0 ? BucketCloses::after : BucketCloses::before;
  buffer.overlaps = stage > 0;
  Runtime& runtime = options.runtime;
  if (stage > 0) {
    FlatOptimizer optimizer;
    optimizer.gathers_together = true;
    runtime.flat_optimizer = optimizer;
    runtime.clips = true;
    runtime.checks_overflow = true;
    buffer.bucket_multiple = data_devices(options, mesh) * alignment;
  }
  if (stage == 2) runtime.reductions.each_microbatch = ReduceEachMicrobatch::all;
  runtime.reductions.buffer = buffer;
}

void run_stages_as_deepspeed(Strategy& options) {
  options.pipeline->schedule.limits = ScheduleLimits::megatron;
  if (options.runtime.reductions.buffer->kept == BufferKept::shards) {
    throw InputError(options.place, "DeepSpeed's pipelines have ZeRO 0 and 1, not 2");
  }
}

}  // namespace

Framework deepspeed_framework() {
  return {"deepspeed",
          "DeepSpeed's ZeRO 0 to 2, with tensor parallelism and stages as Megatron-DeepSpeed has "
          "them",
          {"bucket_elements", "kernels"},
          {},
          begin_deepspeed,
          finish_deepspeed,
          run_stages_as_deepspeed};
}

}  // namespace shardsim
