#include "strategies/frameworks/deepspeed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/json.hpp"
#include "strategies/buffer_keys.hpp"

namespace shardsim {
namespace {

// Defaults of deepspeed/runtime/zero/config.py.
constexpr std::int64_t reduce_bucket_size = 500'000'000;
constexpr std::int64_t prefetch_bucket_size = 50'000'000;
constexpr std::int64_t param_persistence_threshold = 100'000;
constexpr std::int64_t max_live_parameters = 1'000'000'000;
constexpr std::int64_t max_reuse_distance = 1'000'000'000;
constexpr std::int64_t sub_group_size = 1'000'000'000;
// Of the flat group's start and size, nccl_start_alignment_factor.
constexpr std::int64_t alignment = 2;
constexpr std::int64_t largest_number = std::int64_t{1} << 40;

constexpr std::string_view keys_of_stage_3[] = {"prefetch_bucket_elements",
                                                "persistence_threshold_elements",
                                                "max_live_elements",
                                                "max_reuse_distance_elements",
                                                "sub_group_elements",
                                                "hpz",
                                                "qwz",
                                                "allgather_sequential",
                                                "model_persistence_elements",
                                                "memory_efficient_linear"};

std::int64_t number_of(const JsonReader& strategy, std::string_view key, std::int64_t otherwise,
                       std::int64_t least = 0) {
  const auto given = strategy.is_object() ? strategy.find(key) : std::nullopt;
  return given ? given->integer(least, largest_number) : otherwise;
}

bool flag_of(const JsonReader& strategy, std::string_view key, bool otherwise) {
  const auto given = strategy.is_object() ? strategy.find(key) : std::nullopt;
  return given ? given->boolean() : otherwise;
}

void begin_deepspeed(const JsonReader& strategy, const Mesh& mesh, const AxisRoles& roles,
                     Strategy& options) {
  options.context.states = StateMethod::refused;  // runtime/sequence_parallel: of attention
  options.splits_model = has_axis(mesh, roles, AxisRole::model);
  options.runtime.reductions.each_microbatch = ReduceEachMicrobatch::none;
  read_kernels(strategy, options);
  fuse_as_megatron(options);
  // args.async_tensor_model_parallel_allreduce is false with --deepspeed (megatron/arguments.py).
  options.runtime.product_overlap = ProductOverlap::in_turn;
}

// Gradients of ZeRO 3 in buckets that are reduce-scattered while backward goes on, parameters and
// optimizer in parts.
void shard_all(const JsonReader& strategy, const Mesh& mesh, Strategy& options) {
  Runtime& runtime = options.runtime;
  GradientBuffer& buffer = *runtime.reductions.buffer;
  const std::int64_t devices = data_devices(options, mesh);
  buffer.kept = BufferKept::room;
  buffer.scatters = true;
  buffer.parameter_multiple = buffer.bucket_multiple = devices;
  FlatParameters flat;
  flat.prefetch_elements = number_of(strategy, "prefetch_bucket_elements", prefetch_bucket_size);
  flat.whole_elements =
      number_of(strategy, "persistence_threshold_elements", param_persistence_threshold);
  flat.live_elements = number_of(strategy, "max_live_elements", max_live_parameters);
  flat.reuse_elements = number_of(strategy, "max_reuse_distance_elements", max_reuse_distance);
  const std::int64_t secondary = number_of(strategy, "hpz", 1, 1);
  if (devices % secondary != 0) {
    strategy.at("hpz").fail(fmt::format(
        "{} do not divide the {} devices that the batch is split over", secondary, devices));
  }
  flat.secondary_shards = secondary > 1 ? secondary : 0;
  flat.quantized = flag_of(strategy, "qwz", false);
  flat.one_by_one = flag_of(strategy, "allgather_sequential", false);
  if (flat.one_by_one) flat.prefetch_elements = 1;  // engine.py, _configure_zero_optimizer
  flat.whole_in_all = number_of(strategy, "model_persistence_elements", 0);
  flat.linear_functions = flag_of(strategy, "memory_efficient_linear", true);
  runtime.flat_parameters = flat;
  runtime.flat_optimizer->group_elements =
      number_of(strategy, "sub_group_elements", sub_group_size, 1);
}

void finish_deepspeed(const JsonReader& strategy, const Mesh& mesh, Strategy& options) {
  const int stage = std::exchange(options.zero_stage, 0);
  for (const std::string_view key : keys_of_stage_3) {
    if (stage < 3 && strategy.is_object() && strategy.find(key)) {
      strategy.at(key).fail("is of ZeRO 3: \"zero_stage\": 3");
    }
  }
  GradientBuffer buffer;
  buffer.order = stage >= 2 ? BufferOrder::made : BufferOrder::listed;
  buffer.kept = stage >= 2 ? BufferKept::shards : BufferKept::step;
  // Of none: each parameter, which is no less than one, is a bucket. Stage 0 has buckets of its own
  // (engine.py, MEMORY_OPT_ALLREDUCE_SIZE).
  const std::int64_t given = number_of(strategy, "bucket_elements", reduce_bucket_size);
  buffer.bucket_elements = stage == 0 ? reduce_bucket_size : std::max<std::int64_t>(1, given);
  // Stages 0 and 1 go through the list of parameters once backward is through.
  buffer.closes = stage == 0 ? BucketCloses::after : BucketCloses::before;
  buffer.overlaps = stage >= 2;
  Runtime& runtime = options.runtime;
  // Stage 0: clip_grad_norm_ of fp32, FP16_UnfusedOptimizer of other types.
  runtime.averages_norm = runtime.widens_gradients = runtime.wide_gradients_end = stage == 0;
  if (stage > 0) {
    FlatOptimizer optimizer;
    optimizer.gathers_together = true;
    optimizer.deals_out = flag_of(strategy, "round_robin_gradients", false);
    runtime.flat_optimizer = optimizer;
    runtime.clips = true;
    runtime.checks_overflow = stage < 3;
    buffer.bucket_multiple = data_devices(options, mesh) * alignment;
  }
  const auto overlaps = strategy.is_object() ? strategy.find("overlap_comm") : std::nullopt;
  if (overlaps && overlaps->boolean() && stage == 1) {
    buffer.order = BufferOrder::made;
    buffer.overlaps = true;
  }
  buffer.whole_calls = !flag_of(strategy, "reduce_scatter", true);
  if (buffer.whole_calls && stage != 1 && stage != 2) {
    strategy.at("reduce_scatter").fail("false is of ZeRO 1 and 2, whose buckets are all-reduced");
  }
  buffer.two_rooms = overlaps && overlaps->boolean() && (stage == 1 || stage == 2);
  if (stage >= 2) runtime.reductions.each_microbatch = ReduceEachMicrobatch::all;
  runtime.reductions.buffer = buffer;
  if (stage == 3) shard_all(strategy, mesh, options);
}

void run_stages_as_deepspeed(Strategy& options) {
  options.pipeline->schedule.limits = ScheduleLimits::megatron;
  // The first and the last stage copy each microbatch's tokens or labels from memory that is not
  // pinned, which returns when the device is there, behind the message received before it
  // (deepspeed/runtime/pipe/engine.py of 0.19.8, _exec_load_micro_batch). Those between them, whose
  // messages are these stages', are taken to wait likewise.
  options.pipeline->host_awaits_messages = true;
  const BufferKept kept = options.runtime.reductions.buffer->kept;
  if (kept == BufferKept::shards || kept == BufferKept::room) {
    throw InputError(options.place, "DeepSpeed's pipelines have ZeRO 0 and 1, not 2 and 3");
  }
}

}  // namespace

Framework deepspeed_framework() {
  return {.name = "deepspeed",
          .meaning =
              "DeepSpeed's ZeRO 0 to 3, with tensor parallelism and stages as Megatron-DeepSpeed "
              "has them",
          .keys = {"bucket_elements", "overlap_comm", "round_robin_gradients",
                   "prefetch_bucket_elements", "persistence_threshold_elements",
                   "max_live_elements", "max_reuse_distance_elements", "sub_group_elements", "hpz",
                   "qwz", "allgather_sequential", "model_persistence_elements",
                   "memory_efficient_linear", "reduce_scatter", "kernels"},
          .rematerialization = {{"full", R"({"layers": 1, "method": "uniform"})"}},
          .begin = begin_deepspeed,
          .finish = finish_deepspeed,
          .stages = run_stages_as_deepspeed};
}

}  // namespace shardsim
