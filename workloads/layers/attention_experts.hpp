// Mixture of attention heads (JetMoE, arXiv:2404.07413): each token picks `per_token` of `experts`
// pairs of projections, of queries and of the output; keys and values are of one projection for
// all. The picked experts' queries attend to the same keys: heads = kv_heads * per_token.
//
// Example: JetMoE 8B, h = 2048, 16 heads of 128, 2 of 8 experts: 2 * 8 * 2048^2 parameters of pairs
// and 2 * 2048^2 of keys and values a layer.
#pragma once

#include <string>

#include "workloads/layers/attention.hpp"
#include "workloads/layers/experts.hpp"

namespace shardsim::models {

struct AttentionExperts {
  std::string name = "self_attention";
  std::string experts_name = "experts";
  std::int64_t experts = 0;
  std::int64_t per_token = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  Router router{};
  Rotary rotary{};
  double dropout = 0;

  bool operator==(const AttentionExperts&) const = default;
};

Value run(Eager& e, const AttentionExperts& attention, const Value& x, Context& context);

}  // namespace shardsim::models
