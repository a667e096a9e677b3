// What Megatron-LM's arguments say of who holds which gradients and optimizer state, both ways.
#include <fmt/format.h>

#include <algorithm>

#include "base/json.hpp"
#include "launch/framework_files.hpp"
#include "launch/megatron_facts.hpp"

namespace shardsim {
namespace {

// --ddp-pad-buckets-for-high-nccl-busbw: a multiple of 2^16 (param_and_grad_buffer.py).
constexpr std::int64_t padded_bucket = 1 << 16;
// distributed_data_parallel.py.
constexpr std::int64_t least_bucket = 40'000'000;
constexpr std::int64_t bucket_per_device = 1'000'000;

// Instances of the optimizer are replicas of Megatron's FSDP, neighbours share shards
// (mcore_fsdp_adapter.py, hybrid FSDP): the data axis falls into two.
void divide_data(const Facts& facts, std::int64_t instances, Json& mesh) {
  const std::int64_t data = integer_at(mesh, "dp", 1), context = integer_at(mesh, "cp", 1);
  if (data * context % instances != 0) {
    facts.fail("arg.instances", fmt::format("{} instances do not divide the {} devices that hold "
                                            "different tokens",
                                            instances, data * context));
  }
  if (data % instances != 0) {
    facts.fail("arg.instances", "replicas that cut through the context axis are not simulated");
  }
  Json divided = Json::object();
  for (const auto& [axis, size] : mesh.items()) {
    if (axis != "dp") {
      divided[axis] = size;
      continue;
    }
    divided["dp_replicate"] = instances;
    if (data > instances) divided["dp_shard"] = data / instances;
  }
  mesh = std::move(divided);
}

void read_fsdp(const Facts& facts, std::vector<std::string>& notes, Json& experiment) {
  if (!facts.is("arg.sharding", "optim_grads_params")) {
    facts.fail("arg.sharding",
               fmt::format("Megatron's FSDP with \"{}\" is not simulated; \"optim_grads_params\" "
                           "is",
                           facts.text("arg.sharding")));
  }
  if (facts.flag("strategy.loss_per_token")) {
    notes.emplace_back("under Megatron's FSDP the tokens of a step are not counted");
  }
  Json& strategy = experiment["strategy"];
  strategy.erase("loss_per_token");
  strategy.erase("distributed_optimizer");
  // Both overlap whatever is asked for (megatron_fsdp.py, MegatronFSDP.__init__); other overlaps
  // are of the step, not of shards.
  for (const char* fixed : {"gradients", "parameters"}) strategy["overlap"].erase(fixed);
  if (strategy["overlap"].empty()) strategy.erase("overlap");
  const std::int64_t instances = facts.integer("arg.instances");
  if (instances > 1) divide_data(facts, instances, experiment["mesh"]);
}

}  // namespace

void read_megatron_sharding(const Facts& facts, std::vector<std::string>& notes, Json& experiment) {
  if (facts.flag("strategy.fsdp")) return read_fsdp(facts, notes, experiment);
  Json& strategy = experiment["strategy"];
  const std::int64_t instances = facts.integer("arg.instances");
  if (instances > 1) strategy["optimizer_shards"]["instances"] = instances;
  if (facts.flag("arg.pads_buckets"))
    strategy["gradient_buffer"]["bucket_multiple"] = padded_bucket;
}

void add_megatron_buffer_facts(const Json& strategy, std::int64_t data, Facts& facts) {
  const Json buffer = json_at(strategy, "gradient_buffer");
  const Json optimizer = json_at(strategy, "flat_optimizer");
  if (json_at(strategy, "fsdp") == true) {
    facts.set("strategy.fsdp", true);
    facts.set("arg.sharding", "optim_grads_params");
    const std::int64_t replicas = facts.integer_or("mesh.replicas", 1);
    if (replicas > 1) facts.set("arg.instances", replicas);
  }
  if (!buffer.is_object()) return;
  const bool overlaps = buffer["overlap"] == true;
  facts.set("strategy.distributed_optimizer", optimizer.is_object());
  facts.set("strategy.overlap.gradients", overlaps);
  facts.set("strategy.overlap.parameters", json_at(optimizer, "gather") == "next_forward");
  facts.set("strategy.loss_per_token", json_at(strategy, "loss_per_token") == true);
  const std::int64_t elements = buffer["bucket_elements"];
  const std::int64_t usual = overlaps ? std::max(least_bucket, bucket_per_device * data) : 0;
  if (elements != usual) facts.set("strategy.bucket_elements", elements);
  const std::int64_t shards = integer_at(optimizer, "shards", 0);
  if (shards > 0 && shards < data) facts.set("arg.instances", data / shards);
  facts.set("arg.pads_buckets", buffer["bucket_multiple"] == padded_bucket);
}

}  // namespace shardsim
