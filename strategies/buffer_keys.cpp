#include "strategies/buffer_keys.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/json.hpp"

namespace shardsim {
namespace {

constexpr std::int64_t most_elements = std::int64_t{1} << 40;
constexpr std::int64_t largest_multiple = std::int64_t{1} << 32;

GradientBuffer read_buffer(const JsonReader& json, GradientBuffer buffer) {
  json.only_keys({"bucket_elements", "closes", "buckets_of", "shared_apart", "parameter_multiple",
                  "bucket_multiple", "adds_in_products", "collective", "overlap", "aligns_stages"});
  const auto number = [&](const char* key, std::int64_t& value, std::int64_t least,
                          std::int64_t most) {
    if (const auto found = json.find(key)) value = found->integer(least, most);
  };
  const auto flag = [&](const char* key, bool& value) {
    if (const auto found = json.find(key)) value = found->boolean();
  };
  // true: the second of the two.
  const auto choice = [&](const char* key, const std::vector<std::string>& two, bool& second) {
    if (const auto found = json.find(key)) second = found->choice(two) == two.back();
  };
  number("bucket_elements", buffer.bucket_elements, 0, most_elements);
  number("parameter_multiple", buffer.parameter_multiple, 1, largest_multiple);
  number("bucket_multiple", buffer.bucket_multiple, 1, largest_multiple);
  flag("shared_apart", buffer.shared_apart);
  flag("adds_in_products", buffer.adds_in_products);
  flag("overlap", buffer.overlaps);
  flag("aligns_stages", buffer.aligns_stages);
  bool closes_before = buffer.closes == BucketCloses::before;
  choice("closes", {"after", "before"}, closes_before);
  buffer.closes = closes_before ? BucketCloses::before : BucketCloses::after;
  choice("buckets_of", {"all_stages", "first_stage"}, buffer.buckets_of_first_stage_alone);
  choice("collective", {"all-reduce", "reduce-scatter"}, buffer.scatters);
  return buffer;
}

FlatOptimizer read_flat(const JsonReader& json, FlatOptimizer optimizer) {
  json.only_keys({"shards", "gather"});
  if (const auto shards = json.find("shards")) optimizer.shards = shards->integer(0, most_elements);
  if (const auto gather = json.find("gather")) {
    optimizer.gathers_in_forward = gather->choice({"after_step", "next_forward"}) == "next_forward";
  }
  return optimizer;
}

}  // namespace

std::int64_t data_devices(const Strategy& options, const Mesh& mesh) {
  std::int64_t devices = 1;
  for (const auto* axes : {&options.batch_axes, &options.sequence_axes}) {
    for (const std::string& axis : *axes) devices *= mesh.whole(*mesh.find(axis)).size;
  }
  return devices;
}

void read_buffer_keys(const JsonReader& strategy, const Mesh& mesh, Strategy& options) {
  if (!strategy.is_object()) return;
  Runtime& runtime = options.runtime;
  Reductions& reductions = runtime.reductions;
  if (const auto buffer = strategy.find("gradient_buffer")) {
    if (buffer->is_null()) {
      reductions.buffer.reset();
    } else {
      reductions.buffer = read_buffer(*buffer, reductions.buffer.value_or(GradientBuffer{}));
    }
  }
  if (const auto flat = strategy.find("flat_optimizer")) {
    if (flat->is_null()) {
      runtime.flat_optimizer.reset();
    } else {
      runtime.flat_optimizer = read_flat(*flat, runtime.flat_optimizer.value_or(FlatOptimizer{}));
    }
  }
  if (const auto clips = strategy.find("clip_gradients")) runtime.clips = clips->boolean();
  const auto fail = [&](const char* key, const std::string& message) {
    const auto at_key = strategy.find(key);
    (at_key ? *at_key : strategy).fail(message);
  };
  if (!reductions.buffer) {
    if (runtime.flat_optimizer) {
      fail("flat_optimizer", "updates parts of a buffer: \"gradient_buffer\" has to say of which");
    }
    if (runtime.clips) fail("clip_gradients", "true needs a \"gradient_buffer\"");
    return;
  }
  if (options.shards_parameters) {
    fail("gradient_buffer", "holds gradients of whole parameters; \"" + options.name +
                                "\" shards them, and its gradients with them");
  }
  reductions.grain = Grain::bucket;
  if (!runtime.flat_optimizer) return;
  const std::int64_t shards = runtime.flat_optimizer->shards;
  const std::int64_t devices = data_devices(options, mesh);
  if (shards > 0 && devices % shards != 0) {
    fail("flat_optimizer", fmt::format("{} shards do not divide the {} devices that the batch is "
                                       "split over",
                                       shards, devices));
  }
  if (options.zero_stage > 0) {
    fail("zero_stage", "a flat optimizer is ZeRO stage 1 by itself: leave one out");
  }
}

Json buffer_keys_to_json(const Runtime& runtime) {
  Json json = Json::object();
  if (!runtime.reductions.buffer) return json;
  const GradientBuffer& buffer = *runtime.reductions.buffer;
  json["gradient_buffer"] = {
      {"bucket_elements", buffer.bucket_elements},
      {"closes", buffer.closes == BucketCloses::after ? "after" : "before"},
      {"buckets_of", buffer.buckets_of_first_stage_alone ? "first_stage" : "all_stages"},
      {"shared_apart", buffer.shared_apart},
      {"parameter_multiple", buffer.parameter_multiple},
      {"bucket_multiple", buffer.bucket_multiple},
      {"adds_in_products", buffer.adds_in_products},
      {"collective", buffer.scatters ? "reduce-scatter" : "all-reduce"},
      {"overlap", buffer.overlaps},
      {"aligns_stages", buffer.aligns_stages}};
  if (runtime.flat_optimizer) {
    json["flat_optimizer"] = {
        {"shards", runtime.flat_optimizer->shards},
        {"gather", runtime.flat_optimizer->gathers_in_forward ? "next_forward" : "after_step"}};
  } else {
    json["flat_optimizer"] = nullptr;
  }
  json["clip_gradients"] = runtime.clips;
  return json;
}

}  // namespace shardsim
