#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/json.hpp"
#include "golden.hpp"
#include "strategies/rules/fsdp_tutorial.hpp"
#include "strategies/rules/fsdp_tutorial_step.hpp"

namespace shardsim::test {
namespace {

constexpr std::int64_t most = std::int64_t{1} << 40;

// "(512,)", "('data', None)": as Python prints tuples, for the tutorial's log.
std::string tuple_text(const std::vector<std::string>& items) {
  return items.size() == 1 ? fmt::format("({},)", items[0])
                           : fmt::format("({})", fmt::join(items, ", "));
}

std::string python_text(const std::vector<std::int64_t>& shape) {
  std::vector<std::string> items;
  for (const std::int64_t size : shape) items.push_back(std::to_string(size));
  return tuple_text(items);
}

std::string python_text(const BoxName& name) {
  std::vector<std::string> items;
  for (const std::string& axis : name.axes) items.push_back(fmt::format("'{}'", axis));
  return name.is_tuple ? tuple_text(items) : items[0];
}

std::string python_text(const BoxNames& names) {
  std::vector<std::string> items;
  for (const auto& name : names) items.push_back(name ? python_text(*name) : "None");
  return tuple_text(items);
}

std::optional<BoxNames> read_names(const JsonReader& leaf) {
  const auto json = leaf.find("names");
  if (!json) return std::nullopt;
  BoxNames names;
  for (const JsonReader& name : json->elements()) {
    names.push_back(name.is_null() ? std::nullopt : std::optional(read_box_name(name)));
  }
  return names;
}

BoxedArray read_array(const JsonReader& leaf) {
  BoxedArray array{{}, read_names(leaf)};
  for (const JsonReader& size : leaf.at("shape").elements()) {
    array.shape.push_back(size.integer(0, most));
  }
  return array;
}

Json name_to_json(const std::optional<BoxName>& name) {
  if (!name) return nullptr;
  return name->is_tuple ? Json(name->axes) : Json(name->axes[0]);
}

Json to_json(const BoxedArray& array) {
  Json names = nullptr;
  if (array.names) {
    names = Json::array();
    for (const auto& name : *array.names) names.push_back(name_to_json(name));
  }
  return {{"partitioned", array.names.has_value()}, {"local_shape", array.shape}, {"names", names}};
}

// What the tutorial logs about an array that it leaves as it is; null for one that it shards.
Json log_entry(const ShardedParameter& result, const BoxName& axis, std::int64_t min_weight_size) {
  const BoxedArray& array = result.array;
  const std::string shape = python_text(array.shape);
  const std::string names = python_text(array.names.value_or(BoxNames(array.shape.size())));
  const std::string axis_text = axis.is_tuple ? python_text(axis) : axis.axes[0];
  const auto entry = [](std::string_view level, const std::string& message) {
    return Json{{"level", level}, {"message", message}};
  };
  switch (result.outcome) {
    case ShardOutcome::already_sharded:
      return entry("warning", fmt::format("Parameter {} with names {} already sharded on axis {}.",
                                          shape, names, axis_text));
    case ShardOutcome::too_small: {
      std::int64_t size = 1;
      for (const std::int64_t d : array.shape) size *= d;
      return entry(
          "info", fmt::format("Parameter {} with names {} too small to shard, size {} < {}.", shape,
                              names, size, min_weight_size));
    }
    case ShardOutcome::no_dimension:
      return entry(
          "warning",
          fmt::format("Could not shard {} with names {} on axis {}, no suitable axis found.", shape,
                      names, axis_text));
    case ShardOutcome::not_wrapped:
    case ShardOutcome::sharded:
      break;
  }
  return nullptr;
}

// The leaves in jax's order, which is that of the log.
std::vector<std::pair<std::string, JsonReader>> sorted_leaves(const JsonReader& params) {
  std::vector<std::pair<std::string, JsonReader>> leaves = params.members();
  std::sort(leaves.begin(), leaves.end(),
            [](const auto& a, const auto& b) { return path_less(a.first, b.first); });
  return leaves;
}

Json shard(const JsonReader& input) {
  const BoxName axis = read_box_name(input.at("axis_name"));
  const std::int64_t size =
      axis_size(axis, read_golden_mesh(input.at("mesh")), input.at("axis_name").place());
  const auto min_json = input.find("min_weight_size");
  const std::int64_t min_size =
      min_json ? min_json->integer(0, most) : FsdpTutorial{}.min_weight_size;
  Json leaves = Json::object();
  Json log = Json::array();
  Json slices = Json::array();
  for (const auto& [name, leaf] : sorted_leaves(input.at("params"))) {
    const ShardedParameter result = shard_params(read_array(leaf), axis, size, min_size);
    leaves[name] = to_json(result.array);
    if (const Json entry = log_entry(result, axis, min_size); !entry.is_null())
      log.push_back(entry);
    if (!result.dimension) continue;
    const std::int64_t chunk = result.array.shape[*result.dimension];
    for (std::int64_t i = 0; i < size; ++i) slices.push_back({*result.dimension, i * chunk, chunk});
  }
  return {{"leaves", leaves}, {"log", log}, {"per_axis_index_[dim,start,size]", slices}};
}

Json gather(const JsonReader& input) {
  const BoxName axis = read_box_name(input.at("axis_name"));
  const std::int64_t size =
      axis_size(axis, read_golden_mesh(input.at("mesh")), input.at("axis_name").place());
  Json leaves = Json::object();
  Json gathers = Json::array();
  for (const auto& [name, leaf] : sorted_leaves(input.at("params"))) {
    const GatheredArray result = gather_params(read_array(leaf), axis, size);
    leaves[name] = to_json(result.array);
    if (result.dimension) {
      gathers.push_back({{"axis", name_to_json(axis)}, {"dim", *result.dimension}});
    }
  }
  return {{"leaves", leaves}, {"all_gathers", gathers}};
}

SyncAxes read_sync_axes(const JsonReader& json) {
  if (json.is_string()) return {{json.string()}, true};
  SyncAxes axes;
  for (const JsonReader& axis : json.elements()) axes.axes.push_back(axis.string());
  return axes;
}

Json sync(const JsonReader& input) {
  Json axes = Json::object();
  const JsonReader names = input.at("axis_names");
  for (const auto& [name, gradient] : input.at("grads").members()) {
    axes[name] = sync_gradients(read_names(gradient), read_sync_axes(names), names.place());
  }
  return {{"pmean_axes", axes}};
}

void flatten(const JsonReader& json, std::vector<double>& values) {
  if (json.is_number()) {
    values.push_back(json.number());
    return;
  }
  for (const JsonReader& element : json.elements()) flatten(element, values);
}

std::vector<std::int64_t> shape_of(const Json& json) {
  std::vector<std::int64_t> shape;
  for (const Json* at = &json; at->is_array(); at = &at->front()) {
    shape.push_back(static_cast<std::int64_t>(at->size()));
  }
  return shape;
}

// Nested lists of `shape`.
Json nested(const std::vector<double>& values, const std::vector<std::int64_t>& shape) {
  std::vector<Json> level(values.begin(), values.end());
  for (std::size_t d = shape.size(); d-- > 0;) {
    std::vector<Json> outer;
    const auto size = static_cast<std::size_t>(shape[d]);
    for (std::size_t i = 0; i < level.size(); i += size) {
      Json& list = outer.emplace_back(Json::array());
      for (std::size_t k = i; k < i + size; ++k) list.push_back(level[k]);
    }
    level = std::move(outer);
  }
  return level.at(0);
}

Json mean_gradients(const JsonReader& input) {
  DeviceValues values;
  const JsonReader rows = input.at("full_gradient_per_device");
  for (const JsonReader& row : rows.elements()) flatten(row, values.emplace_back());
  std::vector<std::int64_t> shape = shape_of(rows.json()[0]);
  const auto dimension = static_cast<std::size_t>(input.at("shard_dim").integer(0, 8));
  const DeviceValues shards = mean_scatter(values, shape, dimension, rows.place());
  const Json mean = nested(pmean(values), shape);
  shape[dimension] /= static_cast<std::int64_t>(values.size());
  Json shard_rows = Json::array();
  for (const auto& row : shards) shard_rows.push_back(nested(row, shape));
  return {{"shard_gradient_per_device", shard_rows}, {"pmean_of_full_gradient", mean}};
}

Json accumulate(const JsonReader& input) {
  std::vector<double> losses;
  flatten(input.at("per_example_loss"), losses);
  if (input.at("batch_size").integer(0, most) != static_cast<std::int64_t>(losses.size())) {
    input.fail("as many losses as examples are expected");
  }
  const AccumulatedBatch batch = accumulate_gradients(
      losses, input.at("num_minibatches").integer(0, most), input.at("num_minibatches").place());
  return {{"minibatch_size", batch.minibatch},
          {"examples_dropped", batch.dropped},
          {"mean_loss_over_minibatches", batch.loss ? Json(*batch.loss) : Json(nullptr)},
          {"metric_sum_count", {batch.metric_sum, batch.metric_count}}};
}

Json print_metrics(const JsonReader& input) {
  std::map<std::string, std::pair<double, double>> metrics;
  for (const auto& [name, pair] : input.at("metrics").members()) {
    const std::vector<JsonReader> numbers = pair.elements();
    metrics[name] = {numbers.at(0).number(), numbers.at(1).number()};
  }
  const auto title = input.find("title");
  return {{"text", metrics_text(metrics, title ? title->string() : "")}};
}

// Every metric is [sum, count]; counts are the same for all.
Json metrics_sync(const JsonReader& input) {
  std::int64_t scalars = 0;
  std::int64_t count = 0;
  for (const auto& [name, pair] : input.at("local").members()) {
    const std::vector<JsonReader> values = pair.elements();
    scalars += static_cast<std::int64_t>(values.size());
    count = values.at(1).integer(0, most) * input.at("axis_size").integer(1, most);
  }
  return {{"psums", scalars}, {"count_after", count}, {"counts_added_over_steps", true}};
}

Json train_step(const JsonReader& input) {
  ParameterTree tree;
  for (const auto& [name, shape] : input.at("params").members()) {
    ParameterLeaf& leaf = tree.leaves.emplace_back();
    leaf.name = name;
    for (const JsonReader& size : shape.elements()) leaf.shape.push_back(size.integer(0, most));
  }
  const Mesh mesh = read_golden_mesh(input.at("mesh"));
  FsdpTutorial options;
  options.axis = {{mesh.axes()[0].name}, false};
  if (const auto axis = input.find("axis_name")) options.axis = read_box_name(*axis);
  if (const auto size = input.find("min_weight_size")) {
    options.min_weight_size = size->integer(0, most);
  }
  const std::int64_t minibatches = input.at("num_minibatches").integer(1, most);
  const StepCollectives step =
      step_collectives(tree, mesh, options, {options.axis.axes, false}, minibatches,
                       tutorial_metric_scalars, input.place());
  const std::int64_t per_step = step.all_gathers * step.minibatches;
  return {{"per_minibatch", {{"all_gather", step.all_gathers}, {"psum_scatter", step.all_gathers}}},
          {"per_step",
           {{"all_gather", per_step},
            {"psum_scatter", per_step},
            {"pmean_gradients", step.pmeans},
            {"psum_metrics", step.metric_psums}}},
          {"all_gather_result_bytes_f32_per_minibatch", step.gathered.count()},
          {"pmean_bytes_f32", step.averaged.count()}};
}

}  // namespace

void add_fsdp_tutorial(GoldenFunctions& functions) {
  functions.add("shard_params", shard);
  functions.add("gather_params", gather);
  functions.add("sync_gradients", sync);
  functions.add("gather_array_with_mean_grads backward", mean_gradients, {"identity"});
  functions.add("accumulate_gradients", accumulate);
  functions.add("print_metrics", print_metrics);
  functions.add("metrics sync", metrics_sync, {"collectives"});
  functions.add("train_step collectives", train_step);
}

}  // namespace shardsim::test
