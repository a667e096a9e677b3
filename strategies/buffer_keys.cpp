#include "strategies/buffer_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/json.hpp"

namespace shardsim {
namespace {

constexpr std::int64_t most_elements = std::int64_t{1} << 40;
constexpr std::int64_t largest_multiple = std::int64_t{1} << 32;

// As the enums have them.
const std::vector<std::string> words_of_order = {"registered", "made"};
const std::vector<std::string> words_of_kept = {"always", "step", "shards"};

std::size_t place_in(const std::vector<std::string>& words, const JsonReader& json) {
  const auto found = std::find(words.begin(), words.end(), json.choice(words));
  return static_cast<std::size_t>(found - words.begin());
}

GradientBuffer read_buffer(const JsonReader& json, GradientBuffer buffer) {
  json.only_keys({"bucket_elements", "bucket_bytes", "first_bucket_bytes", "order", "kept",
                  "closes", "buckets_of", "shared_apart", "parameter_multiple", "bucket_multiple",
                  "adds_in_products", "collective", "overlap", "aligns_stages"});
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
  number("bucket_bytes", buffer.bucket_bytes, 0, most_elements);
  number("first_bucket_bytes", buffer.first_bucket_bytes, 0, most_elements);
  number("parameter_multiple", buffer.parameter_multiple, 1, largest_multiple);
  number("bucket_multiple", buffer.bucket_multiple, 1, largest_multiple);
  flag("shared_apart", buffer.shared_apart);
  flag("adds_in_products", buffer.adds_in_products);
  flag("overlap", buffer.overlaps);
  flag("aligns_stages", buffer.aligns_stages);
  bool closes_before = buffer.closes == BucketCloses::before;
  choice("closes", {"after", "before"}, closes_before);
  buffer.closes = closes_before ? BucketCloses::before : BucketCloses::after;
  if (const auto order = json.find("order")) {
    buffer.order = static_cast<BufferOrder>(place_in(words_of_order, *order));
  }
  if (const auto kept = json.find("kept")) {
    buffer.kept = static_cast<BufferKept>(place_in(words_of_kept, *kept));
  }
  choice("buckets_of", {"all_stages", "first_stage"}, buffer.buckets_of_first_stage_alone);
  choice("collective", {"all-reduce", "reduce-scatter"}, buffer.scatters);
  return buffer;
}

FlatOptimizer read_flat(const JsonReader& json, FlatOptimizer optimizer) {
  json.only_keys({"shards", "gather"});
  if (const auto shards = json.find("shards")) optimizer.shards = shards->integer(0, most_elements);
  if (const auto gather = json.find("gather")) {
    const std::string when = gather->choice({"after_step", "together", "next_forward"});
    optimizer.gathers_in_forward = when == "next_forward";
    optimizer.gathers_together = when == "together";
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
  if (const auto checks = strategy.find("check_overflow")) {
    runtime.checks_overflow = checks->boolean();
  }
  const auto fail = [&](const char* key, const std::string& message) {
    const auto at_key = strategy.find(key);
    (at_key ? *at_key : strategy).fail(message);
  };
  if (!reductions.buffer) {
    if (runtime.flat_optimizer) {
      fail("flat_optimizer", "updates parts of a buffer: \"gradient_buffer\" has to say of which");
    }
    if (runtime.checks_overflow) fail("check_overflow", "true needs a \"gradient_buffer\"");
    return;
  }
  if (options.shards_parameters) {
    fail("gradient_buffer", "holds gradients of whole parameters; \"" + options.name +
                                "\" shards them, and its gradients with them");
  }
  reductions.grain = Grain::bucket;
  if (!runtime.flat_optimizer) {
    if (reductions.buffer->kept == BufferKept::shards) {
      fail("gradient_buffer", "\"kept\": \"shards\" is of a \"flat_optimizer\", which has them");
    }
    return;
  }
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
  if (!runtime.reductions.buffer) {
    if (runtime.clips) json["clip_gradients"] = true;
    return json;
  }
  const GradientBuffer& buffer = *runtime.reductions.buffer;
  json["gradient_buffer"] = {
      {"bucket_elements", buffer.bucket_elements},
      {"bucket_bytes", buffer.bucket_bytes},
      {"first_bucket_bytes", buffer.first_bucket_bytes},
      {"order", words_of_order[static_cast<std::size_t>(buffer.order)]},
      {"kept", words_of_kept[static_cast<std::size_t>(buffer.kept)]},
      {"closes", buffer.closes == BucketCloses::after ? "after" : "before"},
      {"buckets_of", buffer.buckets_of_first_stage_alone ? "first_stage" : "all_stages"},
      {"shared_apart", buffer.shared_apart},
      {"parameter_multiple", buffer.parameter_multiple},
      {"bucket_multiple", buffer.bucket_multiple},
      {"adds_in_products", buffer.adds_in_products},
      {"collective", buffer.scatters ? "reduce-scatter" : "all-reduce"},
      {"overlap", buffer.overlaps},
      {"aligns_stages", buffer.aligns_stages}};
  json["flat_optimizer"] = nullptr;
  if (const auto& flat = runtime.flat_optimizer) {
    json["flat_optimizer"] = {{"shards", flat->shards},
                              {"gather", flat->gathers_in_forward ? "next_forward"
                                         : flat->gathers_together ? "together"
                                                                  : "after_step"}};
  }
  json["check_overflow"] = runtime.checks_overflow;
  json["clip_gradients"] = runtime.clips;
  return json;
}

}  // namespace shardsim
