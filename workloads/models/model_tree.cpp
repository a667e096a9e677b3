#include "workloads/models/model_tree.hpp"

#include "base/json.hpp"

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

}  // namespace

ParameterTree model_tree(const ModelConfig& config) {
  const Place place{config.path, ""};
  WorkloadOptions options;
  if (reads_tokens(config)) options.sequence = 1;
  const Workload workload = build_workload(config, options);
  ParameterTree tree;
  tree.model = config.name;
  const DType dtype = dtype_of(JsonReader(*config.json, place));
  for (const ParameterView& parameter : parameters(workload)) {
    const std::string& name = workload.tensors[static_cast<std::size_t>(parameter.tensor)].name;
    for (const std::int32_t number : parameter.numbers) {
      ParameterLeaf leaf;
      leaf.name = instance_name(name, number);
      leaf.shape = parameter.shape;
      leaf.dtype = dtype;
      leaf.place = place;
      tree.leaves.push_back(std::move(leaf));
    }
  }
  sort_leaves(tree.leaves);
  return tree;
}

}  // namespace shardsim
