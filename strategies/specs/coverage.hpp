// What the rules of a strategy reach and what they miss: the questions that users ask before they
// trust a sharding.
//
//   unmatched         parameters that no rule decided, where there are rules
//   unused, shadowed  rules that match nothing, or only what earlier rules have taken
//   large replicated  parameters of a MiB or more that every device holds whole
//   indivisible       dimensions that their axes do not divide: the last shard is short, or empty
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/pattern.hpp"
#include "strategies/rules/analyze_sharding.hpp"
#include "strategies/specs/spec_summary.hpp"
#include "strategies/specs/spec_table.hpp"

namespace shardsim {

struct Indivisible {
  std::size_t row = 0;
  std::size_t dimension = 0;
  std::int64_t size = 0;
  std::int64_t shards = 1;
};

struct Coverage {
  std::vector<std::size_t> unmatched;         // rows of the table
  std::vector<std::size_t> unused, shadowed;  // rules
  std::vector<std::size_t> large_replicated;  // rows, largest first
  std::vector<Indivisible> indivisible;
};

// From this size on a parameter that is held whole everywhere is worth a word.
inline constexpr Bytes large_parameter{std::int64_t{1} << 20};

[[nodiscard]] Coverage coverage_of(const SpecTable& table);

// What anybody would notice on an accelerator, and more than norms, biases and routers come to.
inline constexpr Bytes default_max_whole{std::int64_t{1} << 28};

// What a sharding may get wrong and still pass: `specs --strict`.
struct SpecLimits {
  // Of all large parameters that are whole on every device, together; none: default_max_whole,
  // where rules or a tactic are to split them: a strategy that replicates is as it should be.
  std::optional<Bytes> max_whole = {};
  std::vector<Pattern> may_be_unused;  // searched in the text of a rule
};

// Each in one line with its numbers; empty: nothing is wrong. Rules are looked at where they are
// the user's own.
[[nodiscard]] std::vector<std::string> unused_rule_problems(const SpecTable& table,
                                                            const Coverage& coverage,
                                                            const SpecLimits& limits);
[[nodiscard]] std::vector<std::string> whole_problems(const SpecTable& table,
                                                      const Coverage& coverage,
                                                      const SpecLimits& limits);
[[nodiscard]] SpecSummary summarize(const SpecTable& table);

// eformer's analyze_sharding_strategy of the specs as they were returned.
struct SpecAnalysis {
  EformerAnalysis counts;
  bool is_float = false;  // a scalar makes the total a float, as numpy's product of no sizes is 1.0
  std::string error;      // "KeyError: ..." in place of all else
};
[[nodiscard]] SpecAnalysis analyze_specs(const SpecTable& table);

}  // namespace shardsim
