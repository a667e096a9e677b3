#include "workloads/layers/delta_net.hpp"

#include "workloads/layers/mlp.hpp"

namespace shardsim::models {
namespace {

// weight * norm(x) * silu(z), back and forth between types.
Value gated_norm(Eager& e, const Value& x, const Value& z) {
  const Scope at(e, "norm");
  const Value x32 = e.cast(x, DType::f32);
  const Value mean = e.reduce_last(e.apply(x32, Keeps::input));
  const Value normed = e.cast(e.multiply(x32, e.apply(mean, Keeps::result)), e.dtype());
  const Value scaled = e.multiply(e.parameter("weight", {x.last()}), normed);
  return e.cast(e.multiply(scaled, e.apply(e.cast(z, DType::f32), Keeps::input)), e.dtype());
}

struct Projections {
  Value qkv, z, b, a;
};

Projections project(Eager& e, const DeltaNet& n, const Value& x) {
  const std::int64_t keys = n.key_heads * n.key_dim;
  const std::int64_t values = n.value_heads * n.value_dim;
  const Shape rows{x.shape[0], x.shape[1], n.value_heads};
  Projections p;
  if (n.fused_projections) {
    const Value qkvz = run_linear(e, "in_proj_qkvz", x, 2 * keys + 2 * values, false);
    const Value ba = run_linear(e, "in_proj_ba", x, 2 * n.value_heads, false);
    p.qkv = e.copy(qkvz, {x.shape[0], x.shape[1], 2 * keys + values});
    p.z = e.copy(qkvz, {x.shape[0], x.shape[1], values});
    p.b = e.copy(ba, rows);
    p.a = e.copy(ba, rows);
    return p;
  }
  p.qkv = run_linear(e, "in_proj_qkv", x, 2 * keys + values, false);
  p.z = run_linear(e, "in_proj_z", x, values, false);
  p.b = run_linear(e, "in_proj_b", x, n.value_heads, false);
  p.a = run_linear(e, "in_proj_a", x, n.value_heads, false);
  return p;
}

// What the chunked rule keeps beside its inputs.
void save_rule(Eager& e, const DeltaNet& n, const Value& x) {
  constexpr std::int64_t chunk = 64;
  const std::int64_t batch = x.shape[0];
  const std::int64_t sequence = x.shape[1];
  for (int i = 0; i < 2; ++i) {  // queries and keys
    e.save(e.make({batch, sequence, n.key_heads, n.key_dim}, e.dtype(), true));
    e.save(e.constant(DType::f32, {batch, sequence, n.key_heads}));
  }
  e.save(e.constant(DType::f32, {batch, sequence, n.value_heads}));
  e.save(e.make({batch, sequence, n.value_heads, chunk}, e.dtype(), true));
  const std::int64_t per_head =
      e.times(6 * n.key_dim, n.value_dim) + 2 * chunk * (3 * n.key_dim + 2 * n.value_dim);
  e.count_scan(e.times(e.times(batch * sequence, n.value_heads), per_head));
}

}  // namespace

Value run(Eager& e, const DeltaNet& n, const Value& x) {
  const Scope at(e, n.name);
  const Projections p = project(e, n, x);
  const std::int64_t channels = p.qkv.last();
  {
    const Scope convolution(e, "conv1d");
    e.parameter("weight", {channels, 1, n.kernel});
  }
  e.save(p.qkv);
  e.save(e.make(p.qkv.shape, e.dtype(), true));  // queries, keys and values are views of it
  e.save(e.apply(p.b, Keeps::result));
  const Value decay =
      e.apply(e.cast(e.parameter("A_log", {n.value_heads}), DType::f32), Keeps::result);
  const Value step = e.add(e.cast(p.a, DType::f32), e.parameter("dt_bias", {n.value_heads}));
  e.multiply(e.scaled(decay), e.apply(step, Keeps::input));
  save_rule(e, n, x);
  const std::int64_t state = e.times(n.value_heads * n.key_dim, n.value_dim);
  e.cache(0, e.times(channels * n.kernel + state, size_of(e.dtype()).count()));
  const std::int64_t rows = x.shape[0] * x.shape[1] * n.value_heads;
  const Value core = e.make({rows, n.value_dim}, e.dtype(), true);
  const Value normed = gated_norm(e, core, Eager::view(p.z, core.shape));
  return run_linear(e, "out_proj", Eager::view(normed, p.z.shape), x.last(), false);
}

}  // namespace shardsim::models
