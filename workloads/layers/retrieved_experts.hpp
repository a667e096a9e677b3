// A gated MLP beside experts that are a row each of two tables (Doge's CDMoE, after PEER,
// arXiv:2407.04153): a router scores two sets of `keys` keys, the largest `per_token` of all sums
// are a token's experts, each down_embed[i] . x through the activation, weighted, times
// up_embed[i].
//
// Example: 64 experts a token of 16,384, h = 1,024: 128 KiB of rows of either table a token.
// Source: transformers 5.23.0, modeling_doge.py.
#pragma once

#include <string>

#include "workloads/layers/sketch.hpp"

namespace shardsim::models {

struct RetrievedExperts {
  std::int64_t width = 0;  // of the MLP
  bool bias = false;
  std::string activation = "silu";
  std::int64_t experts = 0;
  std::int64_t keys = 0;  // of either set
  std::int64_t per_token = 0;

  bool operator==(const RetrievedExperts&) const = default;
};

Node draw(Sketch& s, const RetrievedExperts& m, Node x);
[[nodiscard]] std::string to_text(const RetrievedExperts& m);

}  // namespace shardsim::models
