#include "strategies/frameworks/nanotron.hpp"

#include <algorithm>

#include "base/json.hpp"
#include "strategies/buffer_keys.hpp"

namespace shardsim {
namespace {

// ddp_bucket_cap_mb of 25 in bf16.
constexpr std::int64_t elements_of_ddp_bucket = 25 * MiB / 2;

void begin_nanotron(const JsonReader& strategy, const Mesh& mesh, const AxisRoles& roles,
                    Strategy& options) {
  options.splits_model = has_axis(mesh, roles, AxisRole::model);
  options.runtime.reductions.each_microbatch = ReduceEachMicrobatch::none;
  options.runtime.clips = true;
  read_kernels(strategy, options);
  Json& kernels = *options.kernels;
  if (kernels.is_null()) kernels = "eager";
  if (kernels.is_string()) kernels = Json{{"base", kernels}};
  if (!kernels.contains("loss")) kernels["loss"] = "plain";
  Json& fused = kernels["fused"];  // qkv_proj
  if (std::find(fused.begin(), fused.end(), Json("qkv")) == fused.end()) fused.push_back("qkv");
}

void finish_nanotron(const JsonReader& strategy, const Mesh& mesh, Strategy& options) {
  const auto field = [&](std::string_view key) {
    return strategy.is_object() ? strategy.find(key) : std::nullopt;
  };
  const auto distributed = field("distributed_optimizer");
  const bool is_flat = !distributed || distributed->boolean();
  GradientBuffer buffer;
  buffer.order = BufferOrder::made;
  buffer.bucket_elements = elements_of_ddp_bucket;
  if (const auto elements = field("bucket_elements")) {
    buffer.bucket_elements = elements->integer(0, std::int64_t{1} << 40);
  }
  buffer.behind_ddp = true;
  buffer.scatters = is_flat;
  if (is_flat) {
    buffer.bucket_multiple = data_devices(options, mesh);
    FlatOptimizer optimizer;
    optimizer.gathers_together = true;
    options.runtime.flat_optimizer = optimizer;
  }
  options.runtime.reductions.buffer = buffer;
}

// As many microbatches as ranks less one, or fewer with all forward passes first (AFAB).
void run_stages_as_nanotron(Strategy& options) {
  Pipeline& pipeline = *options.pipeline;
  pipeline.schedule.limits = ScheduleLimits::megatron;
  StagesRequest& said = pipeline.stages;
  const bool is_said = said.layout || said.first || said.last || !said.counts.empty() ||
                       said.embedding_counts != 0 || said.loss_counts != 0;
  said.by_cost = !is_said && pipeline.schedule.virtual_stages == 1;
}

}  // namespace

Framework nanotron_framework() {
  return {.name = "nanotron",
          .meaning =
              "nanotron: tensor parallelism as Megatron has it, gradients added up in fp32 behind "
              "DDP, ZeRO 1",
          .keys = {"distributed_optimizer", "bucket_elements", "kernels"},
          .precision = {{"gradients", "fp32"}},
          .rematerialization = {{"full", R"({"layers": 1, "method": "uniform"})"}},
          .begin = begin_nanotron,
          .finish = finish_nanotron,
          .stages = run_stages_as_nanotron};
}

}  // namespace shardsim
