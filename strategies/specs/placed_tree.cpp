#include "strategies/specs/placed_tree.hpp"

#include <filesystem>
#include <unordered_map>

#include "base/json.hpp"
#include "plan/read_mesh.hpp"
#include "workloads/files/tree_file.hpp"

namespace shardsim {

PlacedTree read_placed_tree(const JsonReader& document) {
  PlacedTree placed;
  if (const auto mesh = document.find("mesh")) placed.mesh = read_mesh(*mesh);
  std::unordered_map<std::string, PartitionSpec> specs;
  placed.tree =
      read_parameter_tree(document, [&](const ParameterLeaf& leaf, const JsonReader& json) {
        const auto spec = json.find("spec");
        if (!spec) return;
        if (!placed.mesh)
          spec->fail("a spec needs the mesh that it refers to, and \"mesh\" is missing");
        PartitionSpec read = read_partition_spec(*spec);
        static_cast<void>(to_sharding(read, leaf.shape.size(), *placed.mesh, spec->place()));
        specs.emplace(leaf.name, std::move(read));
      });
  for (const ParameterLeaf& leaf : placed.tree.leaves) {
    const auto found = specs.find(leaf.name);
    placed.specs.push_back(found == specs.end() ? std::nullopt : std::optional(found->second));
  }
  return placed;
}

PlacedTree read_placed_tree_file(const std::string& path) {
  if (!is_safetensors(path)) {
    const Json document = load_tree_document(path);
    if (!is_safetensors_index(document)) return read_placed_tree(JsonReader(document, {path, ""}));
  }
  PlacedTree placed{read_tree_file(path), std::nullopt, {}};
  placed.specs.resize(placed.tree.leaves.size());
  return placed;
}

PlacedTree read_placed_tree(const JsonReader& document_or_path, const std::string& directory) {
  if (!document_or_path.is_string()) return read_placed_tree(document_or_path);
  return read_placed_tree_file(
      (std::filesystem::path(directory) / document_or_path.string()).string());
}

Json placed_tree_to_json(const PlacedTree& placed) {
  Json json = parameter_tree_to_json(placed.tree);
  Json& parameters = json["parameters"];
  std::size_t i = 0;
  for (Json& leaf : parameters) {
    if (const auto& spec = placed.specs[i++]) leaf["spec"] = to_json(*spec);
  }
  if (placed.mesh) json["mesh"] = mesh_to_json(*placed.mesh);
  return json;
}

}  // namespace shardsim
