// Which rules of an ordered list match what, where the first that matches decides.
//
//   rules  kernel, attn/kernel, .*     leaves attn/kernel, mlp/kernel, attn/bias
//   kernel matches 2 and decides 2; attn/kernel matches 1 and decides none: it is shadowed by
//   kernel, which matches that one and more; .* matches 3 and decides 1
//
// A rule that decides nothing and yet matches more than any one before it is no mistake but a
// fallback that was not needed.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "strategies/rules/rule_system.hpp"

namespace shardsim {

class RuleMatches {
 public:
  // `rules` not yet counted.
  explicit RuleMatches(std::vector<RuleUse> rules) : rules_(std::move(rules)) {}

  // Counts one leaf that `matching` match, in their order; answers the first of them.
  RuleIndex add(const std::vector<std::size_t>& matching);
  // Counted, and shadowed_by filled in. Cost: O(rules) for each that decides nothing.
  [[nodiscard]] std::vector<RuleUse> uses() const;

 private:
  std::vector<RuleUse> rules_;
  // Leaves that two rules match, the earlier of them first.
  std::map<std::pair<std::size_t, std::size_t>, std::int64_t> both_;
};

}  // namespace shardsim
