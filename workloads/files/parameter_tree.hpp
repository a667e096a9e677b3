// A model's parameters as a flat, ordered list of named leaves: what rule systems assign specs to.
// Unlike a Workload it says nothing of operations.
//
// As JSON, `shardsim/parameter-tree/1`:
//
//   { "schema": "shardsim/parameter-tree/1", "model": "ViT-B/16",
//     "mesh": {"data": 8},                                  // what "spec" refers to, if known
//     "parameters": {
//       "params/head/kernel": {"shape": [768, 1000], "dtype": "float32",
//                              "logical_axes": ["embed", "vocab"],   // flax's names, if it has any
//                              "spec": ["data", null]} } }           // how it lies, if known
//
// Parameters may nest ({"params": {"head": {"kernel": {...}}}}, lists count as "0", "1", ...); an
// object whose "shape" is a list is a leaf, null is no leaf. Names join the path with "/". Leaves
// are ordered as jax.tree_util orders dictionaries and lists: by path, key by key; numbers as
// numbers, before words. docs/parameter-trees.md says where trees come from.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.hpp"
#include "base/json_reader.hpp"

namespace shardsim {

using LogicalAxes = std::vector<std::optional<std::string>>;  // one per dimension

struct ParameterLeaf {
  std::string name;
  std::vector<std::int64_t> shape;
  DType dtype = DType::f32;
  // Has a value for leaves that flax boxes as LogicallyPartitioned.
  std::optional<LogicalAxes> logical_axes;
  bool has_shape = true;  // false: a leaf that is no array (a version number, a string)
  Place place;            // of the leaf in its file
};

struct ParameterTree {
  std::string model;
  std::vector<ParameterLeaf> leaves;
};

// Of a leaf, and of a whole tree: what can be counted in bytes, with room for copies.
inline constexpr std::int64_t most_elements = std::int64_t{1} << 53;

[[nodiscard]] std::int64_t element_count(const ParameterLeaf& leaf);  // 1 for a scalar
[[nodiscard]] Bytes byte_count(const ParameterLeaf& leaf);
// The product of sizes that are not negative; nothing when it is above most_elements.
[[nodiscard]] std::optional<std::int64_t> checked_elements(const std::vector<std::int64_t>& shape);

// jax.tree_util's order of two paths.
[[nodiscard]] bool path_less(const std::string& a, const std::string& b);

// Sorts leaves by path. Throws InputError: a name given twice, more than most_elements in all.
void sort_leaves(std::vector<ParameterLeaf>& leaves);

// Called with every leaf as it is read, for what else its JSON holds: "spec".
using LeafVisitor = std::function<void(const ParameterLeaf&, const JsonReader&)>;

// The leaves of the object under "parameters". `dtype` is that of leaves that do not say theirs.
// Throws InputError: an unknown key or dtype, a negative size, more than 2^53 elements, a name
// given twice.
[[nodiscard]] std::vector<ParameterLeaf> read_parameter_leaves(const JsonReader& parameters,
                                                               DType dtype = DType::f32,
                                                               const LeafVisitor& visit = {});
// The whole document, without its mesh and specs: strategies/specs/placed_tree.hpp reads those.
[[nodiscard]] ParameterTree read_parameter_tree(const JsonReader& document,
                                                const LeafVisitor& visit = {});
// The inverse, flat.
[[nodiscard]] Json parameter_tree_to_json(const ParameterTree& tree);

}  // namespace shardsim
