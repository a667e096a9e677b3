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
const std::vector<std::string> words_of_order = {"registered", "made", "listed"};
const std::vector<std::string> words_of_kept = {"always", "step",  "shards",
                                                "room",   "apart", "views"};

std::size_t place_in(const std::vector<std::string>& words, const JsonReader& json) {
  const auto found = std::find(words.begin(), words.end(), json.choice(words));
  return static_cast<std::size_t>(found - words.begin());
}

GradientBuffer read_buffer(const JsonReader& json, GradientBuffer buffer) {
  json.only_keys({"bucket_elements", "bucket_bytes", "first_bucket_bytes", "order", "kept",
                  "closes", "buckets_of", "shared_apart", "parameter_multiple", "bucket_multiple",
                  "adds_in_products", "behind_ddp", "collective", "overlap", "aligns_stages",
                  "two_rooms", "whole_calls"});
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
  flag("behind_ddp", buffer.behind_ddp);
  flag("overlap", buffer.overlaps);
  flag("aligns_stages", buffer.aligns_stages);
  flag("two_rooms", buffer.two_rooms);
  flag("whole_calls", buffer.whole_calls);
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
  json.only_keys({"shards", "gather", "group_elements", "deals_out"});
  if (const auto deals = json.find("deals_out")) optimizer.deals_out = deals->boolean();
  if (const auto shards = json.find("shards")) optimizer.shards = shards->integer(0, most_elements);
  if (const auto group = json.find("group_elements")) {
    optimizer.group_elements = group->integer(0, most_elements);
  }
  if (const auto gather = json.find("gather")) {
    const std::string when = gather->choice({"after_step", "together", "next_forward"});
    optimizer.gathers_in_forward = when == "next_forward";
    optimizer.gathers_together = when == "together";
  }
  return optimizer;
}

FlatParameters read_flat_parameters(const JsonReader& json, FlatParameters flat) {
  json.only_keys({"prefetch_elements", "whole_elements", "live_elements", "reuse_elements",
                  "secondary_shards", "quantized", "one_by_one", "whole_in_all",
                  "linear_functions"});
  const auto number = [&](const char* key, std::int64_t& value) {
    if (const auto found = json.find(key)) value = found->integer(0, most_elements);
  };
  number("prefetch_elements", flat.prefetch_elements);
  number("whole_elements", flat.whole_elements);
  number("live_elements", flat.live_elements);
  number("reuse_elements", flat.reuse_elements);
  number("secondary_shards", flat.secondary_shards);
  number("whole_in_all", flat.whole_in_all);
  const auto flag = [&](const char* key, bool& value) {
    if (const auto found = json.find(key)) value = found->boolean();
  };
  flag("quantized", flat.quantized);
  flag("one_by_one", flat.one_by_one);
  flag("linear_functions", flat.linear_functions);
  return flat;
}

// Parameters in flat parts have gradients and an optimizer in the same parts.
void check_flat_parameters(const JsonReader& strategy, const Mesh& mesh, const Strategy& options) {
  const Runtime& runtime = options.runtime;
  const auto& buffer = runtime.reductions.buffer;
  const auto& flat = runtime.flat_parameters;
  const auto fail = [&](const char* key, const std::string& message) {
    const auto at_key = strategy.find(key);
    (at_key ? *at_key : strategy).fail(message);
  };
  const bool has_room = buffer && buffer->kept == BufferKept::room;
  const bool has_groups = runtime.flat_optimizer && runtime.flat_optimizer->group_elements > 0;
  if (!flat) {
    if (has_room) fail("gradient_buffer", R"("kept": "room" needs "flat_parameters")");
    if (has_groups) fail("flat_optimizer", R"("group_elements" needs "flat_parameters")");
    return;
  }
  if (!has_room || !buffer->scatters) {
    fail("flat_parameters",
         R"(needs a "gradient_buffer" with "kept": "room" and "collective": "reduce-scatter")");
  }
  if (!has_groups) fail("flat_parameters", R"(needs a "flat_optimizer" with "group_elements")");
  const std::int64_t devices = data_devices(options, mesh);
  if (flat->secondary_shards > 0 && devices % flat->secondary_shards != 0) {
    fail("flat_parameters", fmt::format("{} secondary shards do not divide the {} devices that the "
                                        "batch is split over",
                                        flat->secondary_shards, devices));
  }
}

// Over what a framework has filled in; null takes it away.
template <class Value>
void read_or_reset(const JsonReader& strategy, const char* key, std::optional<Value>& value,
                   Value (*read)(const JsonReader&, Value)) {
  const auto given = strategy.find(key);
  if (!given) return;
  if (given->is_null()) {
    value.reset();
  } else {
    value = read(*given, value.value_or(Value{}));
  }
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
  read_or_reset(strategy, "gradient_buffer", reductions.buffer, read_buffer);
  read_or_reset(strategy, "flat_optimizer", runtime.flat_optimizer, read_flat);
  read_or_reset(strategy, "flat_parameters", runtime.flat_parameters, read_flat_parameters);
  check_flat_parameters(strategy, mesh, options);
  if (const auto clips = strategy.find("clip_gradients")) runtime.clips = clips->boolean();
  if (const auto averages = strategy.find("average_norm")) {
    runtime.averages_norm = averages->boolean();
  }
  if (const auto checks = strategy.find("check_overflow")) {
    runtime.checks_overflow = checks->boolean();
  }
  if (const auto counts = strategy.find("loss_per_token")) {
    runtime.counts_tokens = counts->boolean();
  }
  const auto fail = [&](const char* key, const std::string& message) {
    const auto at_key = strategy.find(key);
    (at_key ? *at_key : strategy).fail(message);
  };
  if (!reductions.buffer) {
    if (runtime.flat_optimizer) {
      fail("flat_optimizer", "updates parts of a buffer: \"gradient_buffer\" has to say of which");
    }
    if (runtime.averages_norm) fail("average_norm", "true needs a \"gradient_buffer\"");
    if (runtime.checks_overflow) fail("check_overflow", "true needs a \"gradient_buffer\"");
    if (runtime.counts_tokens) fail("loss_per_token", "true needs a \"gradient_buffer\"");
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
  if (shards > 0) runtime.flat_optimizer->instances = devices / shards;
  if (options.zero_stage > 0) {
    fail("zero_stage", "a flat optimizer is ZeRO stage 1 by itself: leave one out");
  }
}

void leave_out_optimizer(Runtime& runtime) {
  runtime.reductions.buffer.reset();
  runtime.reductions.grain = Grain::unit;
  runtime.flat_optimizer.reset();
  runtime.clips = runtime.averages_norm = false;
  runtime.checks_overflow = runtime.counts_tokens = false;
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
      {"behind_ddp", buffer.behind_ddp},
      {"collective", buffer.scatters ? "reduce-scatter" : "all-reduce"},
      {"overlap", buffer.overlaps},
      {"aligns_stages", buffer.aligns_stages}};
  if (buffer.two_rooms) json["gradient_buffer"]["two_rooms"] = true;
  if (buffer.whole_calls) json["gradient_buffer"]["whole_calls"] = true;
  json["flat_optimizer"] = nullptr;
  if (const auto& flat = runtime.flat_optimizer) {
    json["flat_optimizer"] = {{"shards", flat->shards},
                              {"group_elements", flat->group_elements},
                              {"deals_out", flat->deals_out},
                              {"gather", flat->gathers_in_forward ? "next_forward"
                                         : flat->gathers_together ? "together"
                                                                  : "after_step"}};
  }
  if (const auto& flat = runtime.flat_parameters) {
    json["flat_parameters"] = {
        {"prefetch_elements", flat->prefetch_elements}, {"whole_elements", flat->whole_elements},
        {"live_elements", flat->live_elements},         {"reuse_elements", flat->reuse_elements},
        {"secondary_shards", flat->secondary_shards},   {"quantized", flat->quantized}};
    Json& json_of_flat = json["flat_parameters"];
    if (flat->one_by_one) json_of_flat["one_by_one"] = true;
    if (flat->whole_in_all > 0) json_of_flat["whole_in_all"] = flat->whole_in_all;
    if (!flat->linear_functions) json_of_flat["linear_functions"] = false;
  }
  json["check_overflow"] = runtime.checks_overflow;
  json["clip_gradients"] = runtime.clips;
  if (runtime.averages_norm) json["average_norm"] = true;
  json["loss_per_token"] = runtime.counts_tokens;
  return json;
}

}  // namespace shardsim
