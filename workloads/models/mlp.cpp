#include "workloads/models/mlp.hpp"

#include <fmt/format.h>

#include "base/json.hpp"
#include "workloads/graph/graph_builder.hpp"
#include "workloads/models/config_reader.hpp"

namespace shardsim {
namespace {

constexpr std::int64_t largest_layer = std::int64_t{1} << 31;
// Each is described by itself, so that work grows faster than with layers that repeat.
constexpr std::size_t most_hidden = 1000;

}  // namespace

Workload build_mlp(const ModelConfig& config, const WorkloadOptions& options) {
  const JsonReader json(*config.json, {config.path, ""});
  const std::vector<std::string> keys = {"model_type", "inputs", "hidden", "classes",
                                         "dropout_rate"};
  json.only_keys(keys);
  const ConfigReader sizes(json, keys);
  const std::vector<JsonReader> hidden = json.at("hidden").elements();
  if (hidden.empty()) json.at("hidden").fail("at least one hidden layer is needed");
  if (hidden.size() > most_hidden) {
    json.at("hidden").fail(
        fmt::format("{} hidden layers are more than {}", hidden.size(), most_hidden));
  }

  GraphBuilder g(config.name, options.compute_dtype);
  const Dim batch{g.label("batch", options.batch, LabelRole::batch)};
  Dim width{g.label("inputs", sizes.size("inputs"))};
  g.begin_block("classifier");
  if (sizes.rate_or("dropout_rate", 0) > 0) g.note("dropout is left out (dropout_rate)");
  // flax's Dense casts what it is given, as it casts its parameters.
  TensorId x =
      g.cast("inputs.cast", g.input("inputs", DType::f32, {batch, width}), g.compute_dtype());
  const auto dense = [&](const std::string& name, const Dim& out) {
    const TensorId kernel = g.parameter(name + "/kernel", {width, out});
    const TensorId bias = g.parameter(name + "/bias", {out});
    width = out;
    return g.linear(name, x, kernel, {batch, out}, bias);
  };
  for (std::size_t i = 0; i < hidden.size(); ++i) {
    const Dim out{g.label(fmt::format("hidden_{}", i), hidden[i].integer(1, largest_layer))};
    x = dense(i == 0 ? "input_dense" : fmt::format("hidden_dense_{}", i), out);
    x = g.elementwise(Function::silu, fmt::format("silu_{}", i), {x});
  }
  const LabelId classes = g.label("classes", sizes.size("classes"));
  const TensorId logits = dense("output_dense", {classes});
  const TensorId labels = g.input("labels", options.index_dtype, {batch});
  return g.finish(g.cross_entropy(g.cast("loss.logits", logits, DType::f32), labels, classes));
}

}  // namespace shardsim
