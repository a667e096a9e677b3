#include "workloads/layers/attention_pool.hpp"

#include "workloads/models/graph/graph_context.hpp"

// Pooling by attention (SigLIP): one learned query sees all rows of an example, then an MLP with a
// norm before it, added. The projections of queries, keys and values are one parameter
// [3*heads*dim, hidden], of which each product reads its part.
namespace shardsim::models {

TensorId add_pool(GraphContext& c, const AttentionPool& pool, TensorId x) {
  c.note("pooling by attention is one kernel; PyTorch's MultiheadAttention multiplies it out");
  const auto inside = [&](const std::string& name) {
    return GraphContext::inside(pool.name, name);
  };
  const LabelId one = c.label("one", 1);
  const LabelId query = c.label("pooled_row", 1);
  const LabelId heads = c.label("pool_heads", pool.heads, LabelRole::heads);
  const LabelId dim = c.label("pool_dim", c.g.label_size(c.hidden) / pool.heads);
  const LabelId three = c.label("qkv", 3);
  const LabelId two = c.label("key_value", 2);
  const std::string at = inside(pool.attention);
  const TensorId probe = c.g.expand(inside(pool.probe) + ".expanded",
                                    c.g.parameter(inside(pool.probe), {{one}, {query}, {c.hidden}}),
                                    {{c.batch}, {query}, {c.hidden}});
  const TensorId matrix = c.g.parameter(at + ".in_proj_weight", {{three, heads, dim}, {c.hidden}});
  const TensorId bias = c.g.parameter(at + ".in_proj_bias", {{three, heads, dim}});
  const std::vector<TensorId> weights =
      c.g.slices(at + ".weights", matrix,
                 {{at + ".q_weight", {{heads, dim}, {c.hidden}}},
                  {at + ".kv_weight", {{two, heads, dim}, {c.hidden}}}},
                 {three, two});
  const std::vector<TensorId> biases = c.g.slices(
      at + ".biases", bias,
      {{at + ".q_bias", {{heads, dim}}}, {at + ".kv_bias", {{two, heads, dim}}}}, {three, two});
  const TensorId q =
      c.g.linear(at + ".q", probe, weights[0], {{c.batch}, {query}, {heads}, {dim}}, biases[0]);
  const TensorId kv = c.g.linear(at + ".kv", x, weights[1],
                                 {{c.batch}, {c.sequence}, {two}, {heads}, {dim}}, biases[1]);
  const std::vector<TensorId> parts = c.g.split({at + ".key", at + ".value"}, kv, two);
  const TensorId seen = c.g.attention(at + ".attention", q, parts[0], parts[1], dim, {}, {});
  const TensorId out = c.linear({at + ".out_proj", {c.hidden}, {heads, dim}, /*bias=*/true}, seen,
                                {{c.batch}, {query}, {c.hidden}});
  const LabelId ffn = c.label("ffn", pool.mlp.width, LabelRole::width);
  const TensorId normed = c.norm(pool.norm, inside(pool.norm.name), out, {c.hidden});
  const std::string mlp = inside(pool.mlp.name);
  const TensorId wide =
      c.activate(pool.mlp.activation, mlp + ".act",
                 c.linear({GraphContext::inside(mlp, pool.mlp.up), {ffn}, {c.hidden}, true}, normed,
                          {{c.batch}, {query}, {ffn}}));
  const TensorId fed = c.linear({GraphContext::inside(mlp, pool.mlp.down), {c.hidden}, {ffn}, true},
                                wide, {{c.batch}, {query}, {c.hidden}});
  const TensorId sum = c.g.elementwise(Function::add, pool.name + ".sum", {out, fed});
  return c.g.slices(pool.name, sum, {{pool.name, {{c.batch}, {c.hidden}}}}, {query}).front();
}

}  // namespace shardsim::models
