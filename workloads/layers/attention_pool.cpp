#include "workloads/layers/attention_pool.hpp"

namespace shardsim::models {
namespace {

// PyTorch's MultiheadAttention of other queries than keys, asked for its weights.
Value attended(Eager& e, const AttentionPool& pool, const Value& probe, const Value& x) {
  const Scope at(e, pool.attention);
  const std::int64_t hidden = x.last();
  const std::int64_t batch = x.shape[0];
  const std::int64_t keys = x.shape[1];
  const std::int64_t dim = hidden / pool.heads;
  const Value weight = e.parameter("in_proj_weight", {3 * hidden, hidden});
  const Value bias = e.parameter("in_proj_bias", {3 * hidden});
  const Value q = e.linear(probe, Eager::view(weight, {hidden, hidden}), bias);
  const Value kv = e.copy(e.linear(x, Eager::view(weight, {2 * hidden, hidden}), bias));
  const Shape heads{batch * pool.heads, keys, dim};
  const Value scores =
      e.bmm(e.scaled(q), Eager::view(kv, heads), 1, dim, keys, {batch * pool.heads, 1, keys});
  const Value out = e.bmm(e.apply(scores, Keeps::result), Eager::view(kv, heads), 1, keys, dim,
                          {batch * pool.heads, 1, dim});
  return run_linear(e, "out_proj", e.copy(out, {batch, 1, hidden}), hidden, /*bias=*/true);
}

}  // namespace

Value run(Eager& e, const AttentionPool& pool, const Value& x) {
  const Scope at(e, pool.name);
  const Value probe = e.parameter(pool.probe, {1, 1, x.last()});
  const Value out = attended(e, pool, e.copy(probe, {x.shape[0], 1, x.last()}), x);
  const Value sum = e.add(out, run(e, pool.mlp, run(e, pool.norm, out)));
  return Eager::view(sum, {x.shape[0], x.last()});
}

}  // namespace shardsim::models
