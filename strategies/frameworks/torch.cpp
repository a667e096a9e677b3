#include "strategies/frameworks/torch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/json.hpp"
#include "strategies/frameworks/model_checks.hpp"

namespace shardsim {
namespace {

constexpr std::int64_t mebibyte = std::int64_t{1} << 20;
// torch/nn/parallel/distributed.py: bucket_cap_mb, and dist._DEFAULT_FIRST_BUCKET_BYTES.
constexpr std::int64_t bucket_cap_mb = 25;
constexpr std::int64_t first_bucket_bytes = mebibyte;
constexpr std::int64_t most_mb = 1 << 20;

bool is_given(const JsonReader& strategy, std::string_view key) {
  return strategy.is_object() && strategy.find(key).has_value();
}

// torch.distributed.tensor.experimental: parts are gathered at once (set_rotate_method's default,
// "allgather"), gradients of keys and values added up in fp32.
void split_context_as_torch(const Mesh& mesh, const AxisRoles& roles, Strategy& options) {
  split_context(mesh, roles, ContextMethod::ring, options);
  options.context.rotation = Rotation::gather;
  options.context.wide_gradients = true;
  options.context.states = StateMethod::refused;  // of attention alone
}

// Over an axis that says in its name that it is of replicas there are no shards: beside none of
// another name, units stay whole and their gradients are all-reduced (fully_shard over a mesh whose
// shard axis is of one device; torchtitan's data_parallel_replicate_degree alone).
bool has_shards(const JsonReader& strategy, const Mesh& mesh, const AxisRoles& roles) {
  if (is_given(strategy, "shard_axis") || has_axis(mesh, roles, AxisRole::shard)) return true;
  return std::any_of(mesh.axes().begin(), mesh.axes().end(), [&](const MeshAxis& axis) {
    return axis.size > 1 && !names_replicas(axis.name) && roles.of(axis.name) == AxisRole::batch;
  });
}

// What FSDP of both versions and DTensors do.
void begin_sharded(const JsonReader& strategy, const Mesh& mesh, const AxisRoles& roles,
                   Strategy& options) {
  options.shards_parameters = has_shards(strategy, mesh, roles);
  options.splits_model = has_axis(mesh, roles, AxisRole::model);
  options.loss_parallel = false;  // a context of its own, torch.distributed.tensor.parallel
  Runtime& runtime = options.runtime;
  runtime.gathers.kept_root = Kept::backward;
  runtime.gathers.asked = Asked::ahead_in_backward;
  runtime.gathers.copied_out = true;
  runtime.reductions.copies = GradientCopies::chunks;
  runtime.reductions.model_sums = ModelSums::apart;
  runtime.reductions.awaited = AwaitReductions::microbatch;
  runtime.whole_table_gradients = true;
  runtime.repeats = RepeatForward::when_needed;
  runtime.returns_outputs = has_axis(mesh, roles, AxisRole::stages);
  read_kernels(strategy, options);
  split_context_as_torch(mesh, roles, options);
  options.shards_over_context = !options.sequence_axes.empty();
  if (!options.shards_parameters && options.shards_over_context) {
    options.shards_parameters = true;
    options.shard_axis = options.sequence_axes.front();
  }
}

// torch.compile is of each layer by itself (torchtitan of 2024-12, parallelize_llama.py,
// apply_compile); later ones have "loss" among compile.components.
void leave_loss_eager(Json& kernels) {
  if (kernels == "compiled") kernels = Json{{"base", "compiled"}};
  if (kernels.is_object() && !kernels.contains("loss")) kernels["loss"] = "plain";
}

void begin_torchtitan(const JsonReader& strategy, const Mesh& mesh, const AxisRoles& roles,
                      Strategy& options) {
  begin_sharded(strategy, mesh, roles, options);
  leave_loss_eager(*options.kernels);
  options.context = {
      .method = ContextMethod::gather, .keeps_gathered = true, .states = StateMethod::refused};
  options.sequence_parallel = options.splits_model;
  options.loss_parallel = true;
  options.shard_dimension = ShardDimension::fitting;
  options.runtime.repeats = RepeatForward::to_end;  // distributed/activation_checkpoint.py, 0.3
  options.runtime.units = UnitsOf::layers_and_ends;
  options.runtime.clips = true;
  options.runtime.whole_table_gradients = false;  // models/common/embedding.py, 0.3
  options.runtime.wide_rows = true;
  options.runtime.returns_outputs = false;  // torchtitan 0.3.0, trainer.py
  if (has_axis(mesh, roles, AxisRole::stages)) options.runtime.gathers.kept = Kept::backward;
}

// Without sequence parallelism nothing prepares an input for several ColwiseParallels at once.
void finish_sharded(const JsonReader& strategy, const Mesh&, Strategy& options) {
  if (is_given(strategy, "input_gradients") || !options.splits_model) return;
  options.input_gradients =
      options.sequence_parallel ? InputGradients::together : InputGradients::apart;
}

void finish_fsdp1(const JsonReader& strategy, const Mesh& mesh, Strategy& options) {
  finish_sharded(strategy, mesh, options);
  options.runtime.gathers.copied_out = false;  // it reads views of the flat parameter
  options.runtime.reductions.copies = GradientCopies::flat;
  options.notes.push_back(
      "FSDP1 pads a unit's flat parameter at its end; here each tensor is padded in its first "
      "dimension");
}

void finish_torchtitan(const JsonReader& strategy, const Mesh& mesh, Strategy& options) {
  finish_sharded(strategy, mesh, options);
  // torchtitan/models/deepseek_v3/sharding.py (0.3): weights of latents are DTensors, replicated.
  const bool adds_up = options.splits_model && options.input_gradients == InputGradients::together;
  if (adds_up && !is_given(strategy, "input_gradients")) {
    options.input_gradients = InputGradients::late;
  }
  // torchtitan/models/llama4/infra/parallelize.py, apply_fsdp: the host waits for the counts of
  // exchanged rows, so each layer has the next one's parameters gathered beforehand.
  const bool exchanges = options.experts && !options.experts->parallel.empty();
  if (exchanges && !is_given(strategy, "ask_ahead")) options.runtime.gathers.asked = Asked::ahead;
  if (is_given(strategy, "spmd_backend")) {
    // spmd_types 0.2 calls torch.distributed itself, not the operators that are saved.
    options.runtime.repeats_calls =
        strategy.at("spmd_backend").choice({"partial_dtensor", "full_dtensor", "spmd_types"}) ==
        "spmd_types";
  }
  if (is_given(strategy, "async_tp") && strategy.at("async_tp").boolean()) {
    options.runtime.product_overlap = ProductOverlap::asynchronous;
  }
}

void begin_ddp(const JsonReader& strategy, const Mesh& mesh, const AxisRoles& roles,
               Strategy& options) {
  options.splits_model = has_axis(mesh, roles, AxisRole::model);
  options.runtime.reductions.each_microbatch = ReduceEachMicrobatch::none;
  read_kernels(strategy, options);
  split_context_as_torch(mesh, roles, options);
}

void finish_ddp(const JsonReader& strategy, const Mesh&, Strategy& options) {
  GradientBuffer buffer;
  buffer.order = BufferOrder::made;
  buffer.bucket_bytes = bucket_cap_mb * mebibyte;
  buffer.first_bucket_bytes = first_bucket_bytes;
  if (is_given(strategy, "bucket_cap_mb")) {
    buffer.bucket_bytes = strategy.at("bucket_cap_mb").integer(1, most_mb) * mebibyte;
    buffer.first_bucket_bytes = 0;
  }
  const bool views = is_given(strategy, "gradient_as_bucket_view") &&
                     strategy.at("gradient_as_bucket_view").boolean();
  buffer.kept = views ? BufferKept::views : BufferKept::apart;
  options.runtime.reductions.buffer = buffer;
}

const std::vector<std::pair<std::string_view, std::string_view>> mixed_precision = {
    {"parameters", "fp32"}, {"gradients", "fp32"}, {"master", "none"}};

// Lists of actions; loops (gpipe, 1f1b) wait where their exchanges do.
void run_stages_as_torch(Strategy& options) {
  Pipeline& pipeline = *options.pipeline;
  if (!pipeline.sends && receives_of(pipeline) == Receives::with_sends) {
    pipeline.sends = Sends::own_backward;
  }
  options.runtime.retains_graph = true;
}

}  // namespace

Framework fsdp1_framework() {
  auto precision = mixed_precision;
  precision.emplace_back("reduce", "bf16");
  return {.name = "fsdp1",
          .meaning = "PyTorch's FullyShardedDataParallel, FULL_SHARD, around each layer",
          .keys = {"kernels"},
          .precision = precision,
          .begin = begin_sharded,
          .finish = finish_fsdp1,
          .stages = run_stages_as_torch};
}

Framework fsdp2_framework() {
  return {.name = "fsdp2",
          .meaning =
              "PyTorch's fully_shard on each layer, with replicas where there is another "
              "batch axis, and DTensor tensor parallelism",
          .keys = {"kernels"},
          .precision = mixed_precision,
          .begin = begin_sharded,
          .finish = finish_sharded,
          .stages = run_stages_as_torch};
}

Framework torchtitan_framework() {
  return {.name = "torchtitan",
          .meaning = "torchtitan: fully_shard, sequence and loss parallel tensor parallelism",
          .keys = {"async_tp", "kernels", "spmd_backend"},
          .precision = mixed_precision,
          .rematerialization = {{"selective", R"({"policy": "every_other_product"})"}},
          .begin = begin_torchtitan,
          .finish = finish_torchtitan,
          .stages = run_stages_as_torch,
          .check = check_as_torchtitan};
}

Framework ddp_framework() {
  return {.name = "ddp",
          .meaning = "PyTorch's DistributedDataParallel: gradients all-reduced in buckets",
          .keys = {"bucket_cap_mb", "gradient_as_bucket_view", "kernels"},
          .precision = {{"parameters", "fp32"}, {"gradients", "fp32"}, {"master", "none"}},
          .begin = begin_ddp,
          .finish = finish_ddp,
          .stages = run_stages_as_torch};
}

}  // namespace shardsim
