#include "reports/model/model_tables.hpp"

#include <fmt/format.h>

#include <map>
#include <set>

#include "base/text.hpp"
#include "workloads/models/patterns.hpp"

namespace shardsim {
namespace {

constexpr TextTable::Align to_left = TextTable::Align::left;
constexpr TextTable::Align to_right = TextTable::Align::right;

Cell model_count(std::int64_t count) { return {format_count(count), std::to_string(count)}; }
Cell model_bytes(std::int64_t bytes) { return {format_bytes(Bytes{bytes}), std::to_string(bytes)}; }
Cell model_flops(std::int64_t flops) {
  return {format_flops(Flops{static_cast<double>(flops)}), std::to_string(flops)};
}

std::string kind_of_operator(const std::string& op) {
  if (op == "_grouped_mm") return "grouped_matmul";
  if (op.starts_with("_scaled_dot_product")) return "attention";
  if (op.starts_with("convolution")) return "convolution";
  return "matmul";
}

std::int64_t elements_of_shape(const models::Shape& shape) {
  std::int64_t elements = 1;
  for (const std::int64_t size : shape) elements *= size;
  return elements;
}

// "layers" of "model.layers.3".
std::string stack_of_layer(const std::string& prefix) {
  return prefix.substr(0, prefix.rfind('.'));
}

std::string step_text(const ModelReport& model) {
  if (model.spec.stacks.empty() && !model.spec.network) {
    return fmt::format("batch {}", model.point.batch);
  }
  if (!model.spec.network) {
    return fmt::format("batch {}, sequence {}", model.point.batch, model.point.sequence);
  }
  const std::int64_t side = model.point.image.value_or(usual_side(*model.spec.network));
  std::string text =
      fmt::format("batch {}, {}", model.point.batch, pictures_text(*model.spec.network, side));
  if (model.point.sequence > 0) text += fmt::format(", {} tokens of text", model.point.sequence);
  return text;
}

}  // namespace

std::vector<LayerRow> layer_rows(const ModelReport& model) {
  std::vector<std::string> names;
  std::vector<std::string> likeness;
  std::set<std::string> stacks;
  for (const models::LayerCounts& layer : model.counts.layers) {
    names.push_back(layer.prefix);
    stacks.insert(stack_of_layer(layer.prefix));
    likeness.push_back(fmt::format("{}/{}/{}/{}/{}/{}", layer.kind, layer.parameters,
                                   layer.forward_flops, layer.backward_flops, layer.saved_bytes,
                                   layer.cache_bytes_per_token));
  }
  std::vector<LayerRow> rows;
  for (const models::NamePattern& pattern : models::fold_patterns(names, likeness)) {
    const models::LayerCounts& one = model.counts.layers[pattern.members.front()];
    const bool single = stacks.size() == 1 && pattern.sets.size() == 1;
    rows.push_back({single ? pattern.sets[0] : pattern.text(), one.kind,
                    static_cast<std::int64_t>(pattern.members.size()), one});
  }
  return rows;
}

std::vector<ParameterRow> parameter_rows(const ModelReport& model) {
  std::vector<std::string> names;
  std::vector<std::string> likeness;
  for (const models::Parameter& parameter : model.counts.parameters) {
    names.push_back(parameter.name);
    likeness.push_back(dims_text(parameter.shape) + std::string(name_of(parameter.dtype)));
  }
  std::vector<ParameterRow> rows;
  for (const models::NamePattern& pattern : models::fold_patterns(names, likeness)) {
    const models::Parameter& one = model.counts.parameters[pattern.members.front()];
    rows.push_back({pattern.name, pattern.sets, pattern.text(),
                    static_cast<std::int64_t>(pattern.members.size()), one,
                    elements_of_shape(one.shape)});
  }
  return rows;
}

std::vector<KindFlops> flops_by_kind(const models::ModelCounts& counts) {
  std::vector<KindFlops> kinds = {{"matmul"}, {"grouped_matmul"}, {"attention"}, {"convolution"}};
  const auto of = [&](const std::string& op) -> KindFlops& {
    const std::string kind = kind_of_operator(op);
    for (KindFlops& known : kinds) {
      if (known.kind == kind) return known;
    }
    return kinds.front();
  };
  for (const auto& [op, flops] : counts.forward) of(op).forward += flops;
  for (const auto& [op, flops] : counts.backward) of(op).backward += flops;
  kinds.push_back({"scan", counts.scan_flops, 0});
  return kinds;
}

std::string model_title(const ModelReport& model) {
  return fmt::format("{}: {} ({})", model.spec.name, model.spec.architecture, model.spec.family);
}

std::vector<std::pair<std::string, std::string>> model_summary(const ModelReport& model) {
  const models::ModelCounts& n = model.counts;
  const Bytes stored{static_cast<std::int64_t>(size_of(model.spec.dtype).count()) *
                     n.total_parameters};
  std::vector<std::pair<std::string, std::string>> rows = {
      {"Parameters", fmt::format("{}, {} in {}", format_count(n.total_parameters),
                                 format_bytes(stored), name_of(model.spec.dtype))}};
  if (n.active_parameters != n.total_parameters) {
    rows.emplace_back("Active per token", format_count(n.active_parameters));
  }
  for (const auto& group : n.tied) {
    std::string names;
    for (const std::string& name : group) names += (names.empty() ? "" : " = ") + name;
    rows.emplace_back("Tied", names);
  }
  const double forward = static_cast<double>(n.forward_flops);
  const double both = forward + static_cast<double>(n.backward_flops);
  rows.emplace_back("Step", step_text(model));
  rows.emplace_back("FLOPs forward", format_flops(Flops{forward}));
  rows.emplace_back("FLOPs forward and backward", format_flops(Flops{both}));
  if (n.scan_flops > 0) {
    rows.emplace_back("Scans forward", format_flops(Flops{static_cast<double>(n.scan_flops)}) +
                                           ", by formula, in no total");
  }
  rows.emplace_back("Saved activations", format_bytes(Bytes{n.saved_bytes}) +
                                             " in eager PyTorch, fused attention, bf16");
  if (n.cache_bytes_per_token > 0) {
    rows.emplace_back("KV cache", format_bytes(Bytes{n.cache_bytes_per_token}) + " per token");
  }
  if (n.state_bytes > 0) {
    rows.emplace_back("State", format_bytes(Bytes{n.state_bytes}) + " per sequence");
  }
  return rows;
}

Table layers_table(const ModelReport& model) {
  Table table{"Layers, each",
              {{"layers", to_left},
               {"kind", to_left},
               {"count", to_right},
               {"parameters", to_right},
               {"active", to_right},
               {"forward", to_right},
               {"backward", to_right},
               {"saved", to_right},
               {"cache/token", to_right}},
              {}};
  const auto add = [&](const std::string& name, const std::string& kind, std::int64_t layers,
                       const models::LayerCounts& one) {
    table.rows.push_back({{name, {}},
                          {kind, {}},
                          model_count(layers),
                          model_count(one.parameters),
                          model_count(one.active_parameters),
                          model_flops(one.forward_flops),
                          model_flops(one.backward_flops),
                          model_bytes(one.saved_bytes),
                          model_bytes(one.cache_bytes_per_token)});
  };
  models::LayerCounts rest;
  rest.parameters = model.counts.total_parameters;
  rest.active_parameters = model.counts.active_parameters;
  rest.forward_flops = model.counts.forward_flops;
  rest.backward_flops = model.counts.backward_flops;
  rest.saved_bytes = model.counts.saved_bytes;
  for (const LayerRow& row : layer_rows(model)) {
    add(row.pattern, row.kind, row.layers, row.one);
    rest.parameters -= row.layers * row.one.parameters;
    rest.active_parameters -= row.layers * row.one.active_parameters;
    rest.forward_flops -= row.layers * row.one.forward_flops;
    rest.backward_flops -= row.layers * row.one.backward_flops;
    rest.saved_bytes -= row.layers * row.one.saved_bytes;
  }
  add("outside", "embedding, head, loss", 1, rest);
  return table;
}

Table flops_table(const ModelReport& model) {
  Table table{"FLOPs", {{"by", to_left}, {"forward", to_right}, {"backward", to_right}}, {}};
  for (const KindFlops& kind : flops_by_kind(model.counts)) {
    if (kind.forward == 0) continue;
    table.rows.push_back({{kind.kind, {}}, model_flops(kind.forward), model_flops(kind.backward)});
  }
  return table;
}

Table model_parameters_table(const ModelReport& model) {
  Table table{"Parameters",
              {{"name", to_left},
               {"shape", to_left},
               {"dtype", to_left},
               {"each", to_right},
               {"instances", to_right}},
              {}};
  for (const ParameterRow& row : parameter_rows(model)) {
    table.rows.push_back({{row.text, {}},
                          {dims_text(row.one.shape), {}},
                          {std::string(name_of(row.one.dtype)), {}},
                          model_count(row.elements),
                          model_count(row.instances)});
  }
  return table;
}

}  // namespace shardsim
