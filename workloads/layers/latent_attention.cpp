#include "workloads/layers/latent_attention.hpp"

#include "workloads/layers/attention_kernel.hpp"
#include "workloads/layers/mlp.hpp"

namespace shardsim::models {
namespace {

// Scores of all keys, without gradient: nothing of it is kept.
void choose_keys(Eager& e, const KeyIndex& index, const Value& x, const Value& latent) {
  const Scope at(e, index.name);
  const auto without_gradient = [](Value value) {
    value.grad = false;
    return value;
  };
  const auto project = [&](const std::string& name, const Value& from, std::int64_t out) {
    const Scope of(e, name);
    const Value weight = without_gradient(e.parameter("weight", {out, from.last()}));
    return e.linear(without_gradient(from), weight);
  };
  const std::int64_t tokens = x.shape[1];
  if (!index.input_norm.empty()) {
    const Scope of(e, index.input_norm);
    e.parameter("weight", {x.last()});
    e.parameter("bias", {x.last()});
  }
  const Value q = project(index.q, latent, index.heads * index.head_dim);
  if (!index.learned_scale.empty()) {
    const Scope of(e, index.learned_scale);
    e.parameter("scale", {index.heads});
    e.parameter("bias", {index.heads});
  }
  const Value k = project(index.k, x, index.head_dim);
  {
    const Scope of(e, index.k_norm);
    e.parameter("weight", {index.head_dim});
    e.parameter("bias", {index.head_dim});
  }
  const Value weights = project(index.weights, x, index.heads);
  const Shape shape{x.shape[0], index.heads * tokens, tokens};
  const Value scores = e.bmm(Eager::view(q, {x.shape[0], index.heads * tokens, index.head_dim}),
                             Eager::view(k, {x.shape[0], tokens, index.head_dim}),
                             index.heads * tokens, index.head_dim, tokens, shape);
  e.bmm(Eager::view(weights, {x.shape[0] * tokens, 1, index.heads}), scores, 1, index.heads, tokens,
        {x.shape[0], tokens, tokens});
}

// query [b, heads, s, d] times scale log(position) + bias of each head.
Value scaled_by_learned(Eager& e, const LatentAttention& a, const Value& query) {
  const Scope at(e, a.learned_scale);
  const std::int64_t tokens = query.shape[2];
  const Value places = e.constant(e.dtype(), {1, 1, tokens});
  const Value scale = Eager::view(e.parameter("scale", {a.heads}), {1, a.heads, 1});
  const Value bias = Eager::view(e.parameter("bias", {a.heads}), {1, a.heads, 1});
  const Value factors = e.add(e.multiply(scale, places), bias);
  return e.multiply(query, Eager::view(factors, {1, a.heads, tokens, 1}));
}

Value normed(Eager& e, const LatentAttention& a, const char* name, const Value& latent) {
  Norm norm = a.norm;
  norm.name = name;
  return run(e, norm, latent);
}

// Queries of all heads, and of a product that makes it, too, the gate of the result.
struct Queries {
  Value q, gate;
};

Queries queries_of(Eager& e, const LatentAttention& a, const Value& x) {
  const std::int64_t qk_dim = a.nope_dim + a.rope_dim;
  if (a.q_rank == 0) {
    if (a.index) choose_keys(e, *a.index, x, x);
    return {run_linear(e, "q_proj", x, a.heads * qk_dim, false), {}};
  }
  const Value latent =
      normed(e, a, "q_a_layernorm", run_linear(e, "q_a_proj", x, a.q_rank, a.bias));
  if (a.index) choose_keys(e, *a.index, x, latent);
  if (!a.gated_queries) return {run_linear(e, "q_b_proj", latent, a.heads * qk_dim, false), {}};
  const Value both = e.copy(latent, {x.shape[0], x.shape[1], 2 * a.q_rank});
  const Value q = run_linear(e, "q_gate_proj", both, a.heads * (qk_dim + a.value_dim), false);
  return {q, e.copy(q, {x.shape[0], x.shape[1], a.heads * a.value_dim})};
}

// The result times what gates let through.
Value opened(Eager& e, const LatentAttention& a, const Value& x, const Value& gate_of_queries,
             const Value& out) {
  if (a.gated_queries) {
    const Value open = e.apply(e.cast(gate_of_queries, DType::f32), Keeps::result);
    return e.cast(e.multiply(out, open), e.dtype());
  }
  if (a.gate_per_head) {
    const Value gate = run_linear(e, a.gate, x, a.heads, /*bias=*/false);
    const Value closed = a.narrow_gate ? gate : e.cast(gate, DType::f32);
    const Value open = e.cast(e.apply(closed, Keeps::result), e.dtype());
    const Shape by_head{out.shape[0], out.shape[1], a.heads, a.value_dim};
    const Value wide = Eager::view(open, {out.shape[0], out.shape[1], a.heads, 1});
    return Eager::view(e.multiply(Eager::view(out, by_head), wide), out.shape);
  }
  if (a.gate.empty()) return out;
  const Value gate = run_linear(e, a.gate, x, out.last(), /*bias=*/false);
  return e.multiply(out, e.apply(gate, Keeps::result));
}

}  // namespace

Value run(Eager& e, const LatentAttention& a, const Value& x, Context& context) {
  const Scope at(e, a.name);
  const std::int64_t batch = x.shape[0];
  const std::int64_t sequence = x.shape[1];
  const std::int64_t qk_dim = a.nope_dim + a.rope_dim;
  const auto [q, gate] = queries_of(e, a, x);
  const Value both = run_linear(e, "kv_a_proj_with_mqa", x, a.kv_rank + a.rope_dim, a.bias);
  const Value latent =
      normed(e, a, "kv_a_layernorm", Eager::view(both, {batch, sequence, a.kv_rank}));
  Value q_rope = Eager::view(q, {batch, a.heads, sequence, a.rope_dim});
  Value k_rope = Eager::view(both, {batch, 1, sequence, a.rope_dim});
  Value query = Eager::view(q, {batch, a.heads, sequence, qk_dim});
  k_rope = run(e, a.rope_norm, k_rope);
  if (a.turned) {
    const Rotary rotary{
        .dims = a.rope_dim, .table = a.table, .complex = a.complex_rotary, .fp32 = a.fp32_rotary};
    turn(e, rotary, context, q_rope, k_rope);
    query = e.copy(query);
  }
  if (!a.learned_scale.empty()) query = scaled_by_learned(e, a, e.copy(query));
  if (a.scale_by_position) {
    query = e.multiply(query, e.constant(e.dtype(), {1, 1, sequence, 1}));
  }
  const Value expanded =
      run_linear(e, "kv_b_proj", latent, a.heads * (a.nope_dim + a.value_dim), false);
  const Value key = e.copy(expanded, {batch, a.heads, sequence, qk_dim});
  const Value value = Eager::view(expanded, {batch, a.heads, sequence, a.value_dim});
  const std::int64_t of_index = a.index ? a.index->head_dim : 0;
  e.cache((a.kv_rank + a.rope_dim + of_index) * size_of(e.dtype()).count(), 0);
  if (a.sinks) e.parameter("sinks", {a.heads});
  const Value out = run_attention_kernel(
      e, query, key, value,
      {.dropout = a.dropout, .by_heads = a.turned || !a.learned_scale.empty(), .sinks = a.sinks});
  return run_linear(e, "o_proj", opened(e, a, x, gate, out), x.last(), a.bias);
}

}  // namespace shardsim::models
