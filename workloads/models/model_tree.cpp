#include "workloads/models/model_tree.hpp"

#include "base/json.hpp"
#include "workloads/models/described_model.hpp"
#include "workloads/models/walk.hpp"

#include <fmt/format.h>

namespace shardsim {
namespace {

DType dtype_of(const JsonReader& config) {
  for (const char* key : {"torch_dtype", "dtype"}) {
    const auto text = config.find(key);
    if (!text) continue;
    const std::optional<DType> dtype = parse_dtype(text->string());
    if (!dtype) text->fail(fmt::format("unknown dtype \"{}\"", text->string()));
    return *dtype;
  }
  return DType::f32;
}

// Full names and shapes, one by one.
std::vector<models::Parameter> parameters_of(const ModelConfig& config, const Place& place) {
  if (is_described(config)) {
    return models::count(read_described(config).spec, {}, place).parameters;
  }
  const Workload workload = build_workload(config, {});
  std::vector<models::Parameter> list;
  for (const ParameterView& parameter : parameters(workload)) {
    const std::string& name = workload.tensors[static_cast<std::size_t>(parameter.tensor)].name;
    for (const std::int32_t number : parameter.numbers) {
      list.push_back({.name = instance_name(name, number), .shape = parameter.shape});
    }
  }
  return list;
}

}  // namespace

ParameterTree model_tree(const ModelConfig& config) {
  const Place place{config.path, ""};
  ParameterTree tree;
  tree.model = config.name;
  const DType dtype = dtype_of(JsonReader(*config.json, place));
  for (models::Parameter& parameter : parameters_of(config, place)) {
    ParameterLeaf leaf;
    leaf.name = std::move(parameter.name);
    leaf.shape = std::move(parameter.shape);
    leaf.dtype = dtype;
    leaf.place = place;
    tree.leaves.push_back(std::move(leaf));
  }
  sort_leaves(tree.leaves);
  return tree;
}

}  // namespace shardsim
