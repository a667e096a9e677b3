// Names that differ in numbers only, under one name: layers of a model, experts of a layer.
//
//   layers/0/w, layers/1/w, head/w  ->  {"layers/{}/w", members 0 and 1}, {"head/w", member 2}
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace shardsim {

struct FoldedName {
  std::string name;                  // "{}" for each number that differs
  std::vector<std::size_t> members;  // indices, in order; at least one
};

// What else must agree stands in `likeness`, by name. Order of first appearance.
[[nodiscard]] std::vector<FoldedName> fold_names(const std::vector<std::string>& names,
                                                 const std::vector<std::string>& likeness);

}  // namespace shardsim
