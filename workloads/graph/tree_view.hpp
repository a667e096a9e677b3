// How another framework's tree holds the parameters of a model: under names of its own, in its own
// order of dimensions, layers stacked along one of them, parts of one tensor as leaves apart.
//
//   gate_up_proj [experts, gate_up*ffn, hidden] of layers 0 to 31, as MaxText has it:
//     dims    [experts], [hidden], [ffn], [gate_up]     the last tells leaves apart
//     leaves  decoder/layers/MoeBlock_0/wi_0 [8, 32, 4096, 14336]   exp, layers, embed_moe, mlp_moe
//             decoder/layers/MoeBlock_0/wi_1 [8, 32, 4096, 14336]
//
// The parameter itself stays what it was: who reads it, what it costs. Its dims are those of its
// leaves, then those that tell leaves apart. views/view.hpp makes views, tree_leaves.hpp their
// leaves.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace shardsim {

struct TreeView {
  // Of a layer, by its number.
  struct Layer {
    std::string path;                   // before the names of its leaves: "decoder/layers"
    std::string mark{};                 // what "{mark}" in these stands for: "_local"
    bool stacked = false;               // layers of one path are one leaf, ascending
    std::optional<std::string> axis{};  // name of the dimension along which they are stacked
    // Of a stack of stacks: how many layers each holds, along a dimension behind the other.
    std::int64_t inner = 1;
    std::optional<std::string> inner_axis{};
  };
  // Parameters that lie beside each other in one leaf, as keys and values in [2, heads, in, head]:
  // which dimension tells them apart, before layers are stacked, and how many are (0: end to end).
  struct Joint {
    std::size_t dimension = 0;
    std::int64_t count = 1;
  };
  struct Form {
    std::string name;  // within its layer, or full; "{0}" is for the first of `parts`
    std::vector<std::optional<std::string>> axes;  // of each dimension of a leaf but the layers
    bool has_axes = true;                          // false: the tree names no dimensions
    std::vector<std::vector<std::string>>
        parts{};                 // by dimension after these, a name for each index
    std::size_t stacked_at = 0;  // which dimension of a leaf the layers are
    std::optional<Joint> joint{};
  };
  std::string name;  // "maxtext"
  // Of each stack, by what the names of its parameters begin with, "encoder.block.", and by number.
  std::map<std::string, std::vector<Layer>> layers;
  std::vector<Form> forms;
};

}  // namespace shardsim
