// Documents that are packed into one sequence: a token sees those of its own document alone.
//
//   pairs of a sequence = s * sum(n_l l^2 f(l)) / sum(n_l l)      of n_l documents of l tokens
//
// with f(l) the part of l^2 that a causal mask and a window leave, 1/2 without a window. Sequences
// are taken as full: what lengths leave of one is of the next one's documents.
//
// Example: of 8 tokens, two documents of 2 and one of 4, causal: 2 * 2 + 8 = 12 pairs of 64.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

namespace shardsim {

struct Documents {
  std::map<std::int64_t, double> lengths;  // tokens: how many of them, at least one, above 0
  friend bool operator==(const Documents&, const Documents&) = default;

  [[nodiscard]] std::int64_t longest() const { return lengths.rbegin()->first; }
  // The length of the document that a token is of, on average: sum(n_l l^2) / sum(n_l l).
  [[nodiscard]] double length_seen() const;
  // Of all pairs of a sequence of `tokens` those that `fraction` of a document's leaves.
  [[nodiscard]] double share_of_pairs(std::int64_t tokens,
                                      const std::function<double(std::int64_t)>& fraction) const;
};

}  // namespace shardsim
