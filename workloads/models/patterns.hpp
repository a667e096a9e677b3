// Names that differ in numbers alone, as one pattern with the sets of their numbers.
//
//   layers.0.w, layers.1.w, layers.3.w          ->  "layers.{}.w"             "0-1,3"
//   blocks.{0..5}.experts.{0..7}.w              ->  "blocks.{}.experts.{}.w"  "0-5", "0-7"
//
// A number is all that stands between two dots. Two sets multiply; names whose numbers are no
// product of sets become several patterns.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shardsim::models {

struct NamePattern {
  std::string name;                  // "{}" for each number
  std::vector<std::string> sets;     // "0-31", "0-3,5"; none for a name without numbers
  std::vector<std::size_t> members;  // indices of what it stands for, in order

  [[nodiscard]] std::string text() const;  // "layers.{0-31}.w"
};

// What else must agree stands in `likeness`, by name. In the order of first members.
[[nodiscard]] std::vector<NamePattern> fold_patterns(const std::vector<std::string>& names,
                                                     const std::vector<std::string>& likeness);

}  // namespace shardsim::models
