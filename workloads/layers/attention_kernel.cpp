#include "workloads/layers/attention_kernel.hpp"

namespace shardsim::models {
namespace {

struct KernelSizes {
  std::int64_t batch, heads, kv_heads, queries, keys, head_dim, value_dim;
};

// 2 b h s k d: one product of scores with a head's rows.
std::int64_t product(const Eager& e, const KernelSizes& n, std::int64_t width) {
  const std::int64_t scores = e.times(e.times(n.batch, n.heads), e.times(n.queries, n.keys));
  return e.times(2, e.times(scores, width));
}

// expand and reshape: a copy, where heads share keys; of one head it is a view.
Value repeated(Eager& e, const Value& x, const KernelSizes& n) {
  if (n.heads == n.kv_heads) return x;
  if (n.kv_heads == 1) return Eager::view(x, {n.batch, n.heads, n.keys, x.last()});
  return e.copy(x, {n.batch, n.heads, n.keys, x.last()});
}

Value plain(Eager& e, Value q, Value k, Value v, const KernelSizes& n, const ScoreRules& rules) {
  if (rules.heads_apart) {
    k = e.scaled(k);
    e.save(e.constant(e.dtype(), {}));
  } else if (n.batch > 1 && !rules.contiguous) {
    // Heads of several examples do not lie together: matmul copies them.
    for (Value* x : {&q, &k, &v}) *x = e.copy(*x);
  }
  for (Value* x : {&k, &v}) {
    *x = repeated(e, *x, n);
    // Of one head of several examples matmul repeats what it copies.
    if (n.kv_heads == 1 && n.heads > 1 && n.batch > 1) *x = e.copy(*x);
  }
  if (rules.fp32_scores) {
    q = e.cast(q, DType::f32);
    k = e.cast(k, DType::f32);
  }
  const Shape scores_shape{n.batch, n.heads, n.queries, n.keys};
  const char* product_op = rules.from_bias ? "baddbmm" : "bmm";
  Value scores = e.bmm(q, k, n.queries, n.head_dim, n.keys, scores_shape, product_op);
  scores = e.scaled(scores);
  if (rules.soft_cap > 0) scores = e.scaled(e.apply(e.scaled(scores), Keeps::result));
  if (rules.bias.exists()) scores = e.add(scores, rules.bias);
  if (rules.bounded) {  // torch.max keeps both of its operands
    e.save(e.scaled(scores));
    e.save(e.constant(DType::f32, {}));
  }
  if (rules.sinks) {
    scores = e.copy(scores, {n.batch, n.heads, n.queries, n.keys + 1});
    e.save(e.constant(DType::i64, {n.batch, n.heads, n.queries, 1}));  // of the largest
  }
  if (rules.fp32_softmax) scores = e.cast(scores, DType::f32);
  Value probabilities = e.cast(e.apply(scores, Keeps::result), e.dtype());
  probabilities.shape = scores_shape;  // without the sinks' column: a view
  probabilities = e.dropout(probabilities, rules.dropout);
  const Value out = e.bmm(probabilities, v, n.queries, n.keys, n.value_dim,
                          {n.batch, n.heads, n.queries, n.value_dim});
  return e.copy(out, {n.batch, n.queries, n.heads * n.value_dim});
}

void save_random_state(Eager& e, bool flash) {
  e.save(e.constant(DType::u64, flash ? Shape{2} : Shape{}));
  e.save(e.constant(DType::u64, {}));
}

Value fused(Eager& e, const Value& q, Value k, Value v, const KernelSizes& n,
            const ScoreRules& rules) {
  constexpr std::int64_t largest_flash_head = 256;
  constexpr std::int64_t padding = 32;  // of the efficient kernel's logsumexp
  const bool flash =
      n.head_dim == n.value_dim && n.head_dim <= largest_flash_head && !rules.bias.exists();
  if (!flash && !rules.expand_kv) {
    k = repeated(e, k, n);
    v = repeated(e, v, n);
  }
  if (rules.bias.exists()) e.save(rules.bias);
  const std::int64_t scores = product(e, n, n.head_dim);
  const std::int64_t values = product(e, n, n.value_dim);
  // Backward: scores again, gradients of probabilities and values, of queries and keys.
  const std::int64_t backward = e.times(3, scores) + e.times(2, values);
  const bool follows = q.grad || k.grad || v.grad;
  e.count(flash ? "_scaled_dot_product_flash_attention" : "_scaled_dot_product_efficient_attention",
          scores + values,
          flash ? "_scaled_dot_product_flash_attention_backward"
                : "_scaled_dot_product_efficient_attention_backward",
          follows ? backward : 0);
  const Value out = e.make({n.batch, n.heads, n.queries, n.value_dim}, e.dtype(), follows);
  if (!follows) return Eager::view(out, {n.batch, n.queries, n.heads * n.value_dim});
  for (const Value& kept : {q, k, v, out}) e.save(kept);
  const std::int64_t rows = flash ? n.queries : (n.queries + padding - 1) / padding * padding;
  e.save(e.constant(DType::f32, {n.batch, n.heads, rows}));
  save_random_state(e, flash);
  if (flash && rules.by_heads) return e.copy(out, {n.batch, n.queries, n.heads * n.value_dim});
  return Eager::view(out, {n.batch, n.queries, n.heads * n.value_dim});
}

}  // namespace

Value run_attention_kernel(Eager& e, const Value& q, const Value& k, const Value& v,
                           const ScoreRules& rules) {
  const KernelSizes n{q.shape[0], q.shape[1], k.shape[1], q.shape[2],
                      k.shape[2], q.last(),   v.last()};
  if (rules.plain_only || e.options().attention == AttentionKernel::plain) {
    return plain(e, q, k, v, n, rules);
  }
  return fused(e, q, k, v, n, rules);
}

}  // namespace shardsim::models
