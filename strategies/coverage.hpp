// What the rules of a strategy reach and what they miss: the questions that users ask before they
// trust a sharding.
//
//   unmatched         parameters that no rule decided, where there are rules
//   unused, shadowed  rules that match nothing, or nothing that an earlier rule has not taken
//   large replicated  parameters of a MiB or more that every device holds whole
//   indivisible       dimensions that their axes do not divide: the last shard is short, or empty
#pragma once

#include <vector>

#include "strategies/spec_summary.hpp"
#include "strategies/spec_table.hpp"

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
[[nodiscard]] SpecSummary summarize(const SpecTable& table);

}  // namespace shardsim
