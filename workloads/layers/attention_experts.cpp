#include "workloads/layers/attention_experts.hpp"

#include "workloads/layers/attention_kernel.hpp"
#include "workloads/layers/mlp.hpp"

namespace shardsim::models {

Value run(Eager& e, const AttentionExperts& a, const Value& x, Context& context) {
  const Scope at(e, a.name);
  const std::int64_t tokens = x.shape[0] * x.shape[1];
  const std::int64_t rows = tokens * a.per_token;
  const std::int64_t width = a.kv_heads * a.head_dim;
  const Value offsets = e.constant(DType::i32, {a.experts});
  const auto indices = [&] { return e.constant(DType::i64, {rows}); };
  const auto of_experts = [&](const char* name, const Value& from, std::int64_t out) {
    const Shape stack{a.experts, out, from.last()};
    return e.grouped_matmul(from, e.expert_parameter(name, stack, a.per_token, a.experts), offsets,
                            out);
  };
  Value q;
  Value weights;
  {
    const Scope of(e, a.experts_name);
    e.parameter("bias", {x.last()});
    const Value flat = Eager::view(x, {tokens, x.last()});
    Experts picked;
    picked.experts = a.experts;
    picked.per_token = a.per_token;
    picked.router = a.router;
    weights = e.index(route(e, picked, flat), indices(), {rows, 1});
    q = of_experts("input_linear.weight", e.index(flat, indices(), {rows, x.last()}), width);
    q = e.index(q, indices(), {rows, width});
  }
  const Value both = run_linear(e, "kv_proj", x, 2 * width, /*bias=*/false);
  const std::int64_t heads = a.kv_heads * a.per_token;
  q = Eager::view(q, {x.shape[0], heads, x.shape[1], a.head_dim});
  const Shape key_shape{x.shape[0], a.kv_heads, x.shape[1], a.head_dim};
  Value k = Eager::view(both, key_shape);
  turn(e, a.rotary, context, q, k);
  e.cache(2 * width * size_of(e.dtype()).count(), 0);
  const Value out =
      run_attention_kernel(e, q, e.copy(k, q.shape), e.copy(Eager::view(both, key_shape), q.shape),
                           {.dropout = a.dropout});
  const Scope of(e, a.experts_name);
  const Value sorted = e.index(Eager::view(out, {rows, width}), indices(), {rows, width});
  const Value weighted = e.multiply(of_experts("output_linear.weight", sorted, x.last()), weights);
  e.index(weighted, indices(), {tokens, x.last()});
  return e.make(x.shape, x.dtype, true);  // the sum over a token's experts, and the bias
}

}  // namespace shardsim::models
