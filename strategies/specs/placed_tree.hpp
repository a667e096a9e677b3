// A parameter tree together with how it lies, as its exporter recorded it: the "mesh" and the
// "spec" of each leaf in `shardsim/parameter-tree/1` (workloads/files/parameter_tree.hpp).
//
//   "mesh": {"data": 2, "model": 4}
//   "params/head/kernel": {"shape": [768, 1000], "spec": [null, "model"]}     P(None, model)
//
// Specs are checked as NamedSharding checks them (to_sharding): every axis is in the mesh and used
// once, no more entries than dimensions. A spec without a mesh is an error, a mesh without specs
// not; a leaf without a spec has none recorded, which is not the same as P().
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sharding/partition_spec.hpp"
#include "workloads/files/parameter_tree.hpp"

namespace shardsim {

struct PlacedTree {
  ParameterTree tree;
  std::optional<Mesh> mesh;
  std::vector<std::optional<PartitionSpec>> specs;  // one per leaf
};

// Throws InputError; RuleError for a spec that NamedSharding would refuse.
[[nodiscard]] PlacedTree read_placed_tree(const JsonReader& document);
// From any file that read_tree_file knows; only tree JSON has a mesh and specs.
[[nodiscard]] PlacedTree read_placed_tree_file(const std::string& path);
// A document in place, or the path of a file, relative to `directory`.
[[nodiscard]] PlacedTree read_placed_tree(const JsonReader& document_or_path,
                                          const std::string& directory);
[[nodiscard]] Json placed_tree_to_json(const PlacedTree& placed);

}  // namespace shardsim
