#include "strategies/frameworks/megatron.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "base/json.hpp"
#include "strategies/buffer_keys.hpp"
#include "strategies/frameworks/model_checks.hpp"

namespace shardsim {
namespace {

// param_and_grad_buffer.py: where parameters begin and buckets end under the distributed optimizer.
constexpr std::int64_t parameter_multiple = 64;
constexpr std::int64_t bucket_multiple = 128;
// distributed_data_parallel.py, bucket_size of overlap_grad_reduce.
constexpr std::int64_t least_bucket = 40'000'000;
constexpr std::int64_t bucket_per_device = 1'000'000;
// vocab_size_with_padding: make_vocab_size_divisible_by times the tensor-parallel size.
constexpr std::int64_t vocabulary_multiple = 128;

constexpr std::int64_t most_microbatches = 1 << 24;  // all

struct Overlap {
  bool gradients = true;
  bool parameters = true;
};

// --use-megatron-fsdp, --data-parallel-sharding-strategy optim_grads_params: layers are units, all
// else is gathered once and stays until backward is through
// (megatron/core/distributed/fsdp/src/megatron_fsdp, fsdp_unit_modules). Shards lie over data and
// context ("dp_cp", mcore_fsdp_adapter.py); gathers and reductions run beside kernels whatever is
// asked for (MegatronFSDP.__init__ sets overlap_param_gather and overlap_grad_reduce).
void shard_as_fsdp(Strategy& options) {
  options.shards_parameters = true;
  Runtime& runtime = options.runtime;
  runtime.gathers.kept_root = Kept::backward;
  runtime.gathers.asked = Asked::ahead;
  runtime.reductions.each_microbatch = ReduceEachMicrobatch::all;
  options.notes.push_back(
      "Megatron's FSDP is planned as gathers and reductions layer by layer: its own calls have not "
      "been compared with ours");
}

// Whatever kernels there are, queries, keys and values are one linear layer, linear_qkv, routers
// cast what they read themselves, and the loss is cross_entropy.py's over the split vocabulary.
void complete_kernels(Strategy& options) {
  Json& kernels = *options.kernels;
  if (kernels.is_null()) kernels = "transformer-engine";
  if (kernels.is_string()) kernels = Json{{"base", kernels}};
  if (!kernels.contains("loss")) kernels["loss"] = "parallel";
  Json& fused = kernels["fused"];
  for (const char* name : {"qkv", "router"}) {
    if (std::find(fused.begin(), fused.end(), Json(name)) == fused.end()) fused.push_back(name);
  }
}

void begin_megatron(const JsonReader& strategy, const Mesh& mesh, const AxisRoles& roles,
                    Strategy& options) {
  options.splits_model = has_axis(mesh, roles, AxisRole::model);
  options.saves_sharded_inputs = true;
  options.runtime.reductions.each_microbatch = ReduceEachMicrobatch::none;
  options.runtime.clips = true;
  options.runtime.reports_norm = true;
  options.runtime.widens_gradients = true;
  if (strategy.is_object() && strategy.find("fsdp") && strategy.at("fsdp").boolean()) {
    shard_as_fsdp(options);
  }
  ExpertLayout experts;
  experts.counts = ExpertCounts::gathered;
  experts.auxiliary_losses = {AuxiliaryLoss::batch};
  experts.moves_biases = true;
  experts.holds_rows = true;
  experts.exchange.weights_travel = true;
  experts.exchange.shared_first = true;
  for (const MeshAxis& axis : mesh.axes()) {
    if (roles.of(axis.name) == AxisRole::model) experts.tensor = splitting_axes({axis.name}, mesh);
  }
  options.experts = experts;
  read_kernels(strategy, options);
  fuse_as_megatron(options);
  complete_kernels(options);
  options.latents_first = true;
  options.split_latents = options.kernels->value("base", Json()) == "eager";
  split_context(mesh, roles, ContextMethod::ring, options);
  options.context.states = StateMethod::heads;
  options.shards_over_context = options.shards_parameters && !options.sequence_axes.empty();
}

// defer_embedding_wgrad_compute, with wgrad_deferral_limit: of how many microbatches.
std::int64_t read_late_microbatches(const JsonReader& json) {
  if (json.is_bool() && !json.boolean()) return 0;
  if (!json.is_object()) {
    (void)json.choice({"deferred"});
    return most_microbatches;
  }
  json.only_keys({"microbatches"});
  return json.at("microbatches").integer(1, most_microbatches);
}

Overlap read_overlap(const JsonReader& strategy, Strategy& options) {
  Overlap overlap;
  const auto json = strategy.is_object() ? strategy.find("overlap") : std::nullopt;
  if (!json) return overlap;
  json->only_keys({"gradients", "parameters", "tp", "p2p", "experts", "embedding_gradient"});
  if (const auto gradients = json->find("gradients")) overlap.gradients = gradients->boolean();
  if (const auto parameters = json->find("parameters")) {
    const bool with_optimizer = parameters->is_string();
    if (with_optimizer) (void)parameters->choice({"optimizer"});
    overlap.parameters = with_optimizer || parameters->boolean();
  }
  const auto products = json->find("tp");
  if (products && products->boolean()) {
    options.runtime.product_overlap = ProductOverlap::userbuffers;
  }
  if (const auto experts = json->find("experts")) {
    const bool is_late = experts->is_string();
    if (is_late) (void)experts->choice({"delay_wgrad"});
    if (is_late || experts->boolean()) {
      options.runtime.exchange_overlap =
          is_late ? ExchangeOverlap::late_weights : ExchangeOverlap::passes;
    }
  }
  if (const auto messages = json->find("p2p")) options.exchanges_messages = !messages->boolean();
  if (const auto head = json->find("embedding_gradient")) {
    options.runtime.late_head_gradients = read_late_microbatches(*head);
  }
  return overlap;
}

// So many devices, or {"instances": n}: the data axes in so many parts.
std::int64_t read_shards(const JsonReader& json, std::int64_t devices) {
  if (!json.is_object()) return json.integer(1, devices);
  json.only_keys({"instances"});
  const JsonReader given = json.at("instances");
  const std::int64_t instances = given.integer(1, devices);
  if (devices % instances == 0) return devices / instances;
  given.fail(
      fmt::format("{} instances of the optimizer do not divide the {} devices that the "
                  "batch is split over",
                  instances, devices));
}

void finish_megatron(const JsonReader& strategy, const Mesh& mesh, Strategy& options) {
  const auto field = [&](std::string_view key) {
    return strategy.is_object() ? strategy.find(key) : std::nullopt;
  };
  const std::int64_t devices = data_devices(options, mesh);
  const Overlap overlap = read_overlap(strategy, options);
  const auto distributed = field("distributed_optimizer");
  const bool is_flat = !distributed || distributed->boolean();
  const auto shards = field("optimizer_shards");
  const std::int64_t split =
      options.model_axis.empty() ? 1 : mesh.whole(*mesh.find(options.model_axis)).size;
  if (!field("vocabulary_multiple")) options.vocabulary_multiple = vocabulary_multiple * split;
  if (options.shards_parameters) {
    if (!overlap.gradients || !overlap.parameters) {
      options.notes.emplace_back(
          "Megatron's FSDP gathers and reduces beside kernels whatever \"overlap\" says");
    }
    if (shards) shards->fail("are of the distributed optimizer; \"fsdp\" has shards of everything");
    return;
  }
  if (shards && !is_flat) {
    shards->fail("are of the distributed optimizer, and \"distributed_optimizer\" is false");
  }
  FlatOptimizer optimizer;
  if (shards) optimizer.shards = read_shards(*shards, devices);
  optimizer.gathers_in_forward = overlap.parameters && overlap.gradients;

  GradientBuffer buffer;
  buffer.overlaps = overlap.gradients;
  buffer.bucket_elements =
      overlap.gradients ? std::max(least_bucket, bucket_per_device * devices) : 0;
  if (const auto elements = field("bucket_elements")) {
    const std::int64_t limit = elements->integer(0, std::int64_t{1} << 40);
    if (overlap.gradients) {
      buffer.bucket_elements = limit;
    } else {
      options.notes.emplace_back(
          "\"bucket_elements\" have no effect: without overlap of gradients all is one bucket");
    }
  }
  buffer.buckets_of_first_stage_alone = true;
  buffer.aligns_stages = true;
  buffer.shared_apart = is_flat;
  buffer.adds_in_products = true;
  buffer.scatters = is_flat;
  if (is_flat) {
    buffer.parameter_multiple = parameter_multiple;
    buffer.bucket_multiple = bucket_multiple;
    options.runtime.flat_optimizer = optimizer;
  }
  options.runtime.reductions.buffer = buffer;
}

void run_stages_as_megatron(Strategy& options) {
  Pipeline& pipeline = *options.pipeline;
  if (!pipeline.remainder) pipeline.remainder = Remainder::noted;  // transformer_config.py
  pipeline.schedule.limits = ScheduleLimits::megatron;
  const bool is_interleaved = pipeline.schedule.name == "interleaved-1f1b";
  const bool exchanges = is_interleaved && options.exchanges_messages;
  if (!pipeline.receives && is_interleaved) {
    pipeline.receives = exchanges ? Receives::exchanged : Receives::one_ahead;
  }
  // batch_p2p_sync, of messages that overlap with nothing (pipeline_parallel/p2p_communication.py);
  // zero-bubble schedules are of a runtime that polls.
  pipeline.host_awaits_messages = pipeline.schedule.name == "1f1b" || exchanges;
  if (!pipeline.sends && is_interleaved && !exchanges) pipeline.sends = Sends::next_send;
  if (!pipeline.sends && (exchanges || receives_of(pipeline) == Receives::when_needed)) {
    pipeline.sends = Sends::next_kernel;
  }
}

}  // namespace

Framework megatron_framework() {
  return {.name = "megatron",
          .meaning =
              "Megatron-Core: tensor parallelism, gradient buffers in buckets, the distributed "
              "optimizer",
          .keys = {"fsdp", "distributed_optimizer", "optimizer_shards", "overlap",
                   "bucket_elements", "kernels"},
          .precision = {{"gradients", "fp32"}},
          .rematerialization = {{"full", R"({"layers": 1, "method": "uniform"})"},
                                {"selective", R"({"modules": ["core_attention"]})"}},
          .begin = begin_megatron,
          .finish = finish_megatron,
          .stages = run_stages_as_megatron,
          .check = check_as_megatron};
}

}  // namespace shardsim
