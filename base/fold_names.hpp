// Names that differ in the number of a layer or of an expert only, under one name.
//
//   layers/0/w, layers/1/w, head/w  ->  {"layers/{}/w", members 0 and 1}, {"head/w", member 2}
//
// Such a number is all that stands between two of "." and "/", or the number of a list of layers or
// blocks as Flax writes it, "layers_0". Others are part of a word: w1 and w2 are not the same.
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
