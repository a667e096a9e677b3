// Flags that hold a list, or are repeated, make variants of an experiment: each value of each flag
// with each of the others, named by what differs.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "command.hpp"

namespace shardsim {

// Values of a flag, where there are several, and what they are called in the names of variants.
struct FlagChoice {
  const Flag* flag = nullptr;
  std::vector<std::string> values;
  std::vector<std::string> labels;
};

// One value of each choice.
struct Variant {
  std::vector<std::size_t> indices;  // by choice
  std::string label;                 // of those that are several; empty: there is one variant
};

// What the flags leave open, in the order in which they are given: one of each makes a variant.
// Throws UsageError: an empty value, one that is given twice, more than 1000 variants.
[[nodiscard]] std::vector<FlagChoice> choices_of(const Given& given, std::span<const Flag> flags);
// The last choice varies fastest.
[[nodiscard]] std::vector<Variant> variants_of(const std::vector<FlagChoice>& choices);

}  // namespace shardsim
