// A parameter tree as a table with totals by element type, in which layers that are alike are one
// row with what they take together; and as CSV with one row per tensor. Its JSON, which has every
// tensor, too, is parameter_tree_to_json.
#pragma once

#include <string>

#include "base/text.hpp"
#include "workloads/files/parameter_tree.hpp"

namespace shardsim {

[[nodiscard]] std::string tree_text(const ParameterTree& tree,
                                    std::size_t width = default_text_width);
[[nodiscard]] std::string tree_csv(const ParameterTree& tree);

}  // namespace shardsim
