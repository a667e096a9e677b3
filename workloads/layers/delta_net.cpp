#include "workloads/layers/delta_net.hpp"

#include "workloads/layers/mlp.hpp"

namespace shardsim::models {
namespace {

// weight * norm(x) * silu(z), back and forth between types; Kimi's in fp32 to the end, with a
// sigmoid.
Value gated_norm(Eager& e, const DeltaNet& n, const Value& x, const Value& z) {
  const Scope at(e, n.norm);
  const Value x32 = e.cast(x, DType::f32);
  const Value mean = e.reduce_last(e.apply(x32, Keeps::input));
  Value normed = e.multiply(x32, e.apply(mean, Keeps::result));
  Value weight = e.parameter("weight", {x.last()});
  if (n.by_channel()) {
    weight = e.cast(weight, DType::f32);
  } else {
    normed = e.cast(normed, e.dtype());
  }
  const Value scaled = e.multiply(weight, normed);
  const Value gate = e.cast(z, DType::f32);
  const Keeps kept = n.by_channel() ? Keeps::result : Keeps::input;
  return e.cast(e.multiply(scaled, e.apply(gate, kept)), e.dtype());
}

struct Projections {
  Value qkv, z, b, a;
};

Projections project(Eager& e, const DeltaNet& n, const Value& x) {
  const std::int64_t keys = n.key_heads * n.key_dim;
  const std::int64_t values = n.value_heads * n.value_dim;
  const Shape rows{x.shape[0], x.shape[1], n.value_heads};
  Projections p;
  if (n.projections == DeltaProjections::each || n.by_channel()) {
    run_linear(e, "q_proj", x, keys, false);
    run_linear(e, "k_proj", x, keys, false);
    run_linear(e, "v_proj", x, values, false);
    p.qkv = e.make({x.shape[0], x.shape[1], 2 * keys + values}, e.dtype(), true);
    p.b = run_linear(e, "b_proj", x, n.value_heads, false);
    if (n.projections == DeltaProjections::whole_channels) {
      p.z = run_linear(e, "g_proj", x, values, false);
      const Scope gate(e, "forget_gate");
      p.a = run_linear(e, "f_proj", x, keys, false);
    } else if (n.by_channel()) {
      p.z =
          run_linear(e, "g_b_proj", run_linear(e, "g_a_proj", x, n.key_dim, false), values, false);
      const Scope gate(e, "forget_gate");
      p.a = run_linear(e, "f_b_proj", run_linear(e, "f_a_proj", x, n.key_dim, false), keys, false);
    } else {
      p.z = run_linear(e, "g_proj", x, values, false);
      p.a = run_linear(e, "a_proj", x, n.value_heads, false);
    }
    return p;
  }
  if (n.projections == DeltaProjections::qkvz_ba) {
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
  const std::int64_t decays = n.by_channel() ? n.key_dim : 1;
  e.save(e.constant(DType::f32, {batch, sequence, n.value_heads, decays}));
  // Products of the chunk's keys; where channels decay by themselves, of its queries, too.
  const std::int64_t products = n.by_channel() ? 2 : 1;
  e.save(e.make({products, batch, sequence, n.value_heads, chunk}, e.dtype(), true));
  const std::int64_t per_head =
      e.times(6 * n.key_dim, n.value_dim) + 2 * chunk * (3 * n.key_dim + 2 * n.value_dim);
  e.count_scan(e.times(e.times(batch * sequence, n.value_heads), per_head));
}

// Of Ling: a bound times sigmoid(exp(a) (x + bias)), or -exp(a) softplus(x + bias), in fp32.
void decays_of_ling(Eager& e, const DeltaNet& n, const Value& x) {
  const Scope at(e, "forget_gate");
  const Value bias = e.parameter("dt_bias", {x.last()});
  const Value rate = e.apply(e.parameter("A_log", {n.key_heads}), Keeps::result);
  const Value sum = e.add(e.cast(x, DType::f32), bias);
  if (!n.bounded) {
    e.multiply(e.scaled(rate), e.apply(sum, Keeps::input));
    return;
  }
  e.save(rate);
  e.save(sum);
  e.scaled(e.apply(e.make(sum.shape, DType::f32, true), Keeps::result));
}

// -exp(a) softplus(x + bias), in fp32; Kimi's by hand.
void decays(Eager& e, const DeltaNet& n, const Value& x) {
  if (!n.by_channel()) {
    const Value decay =
        e.apply(e.cast(e.parameter("A_log", {n.value_heads}), DType::f32), Keeps::result);
    const Value step = e.add(e.cast(x, DType::f32), e.parameter("dt_bias", {n.value_heads}));
    e.multiply(e.scaled(decay), e.apply(step, Keeps::input));
    return;
  }
  if (n.projections == DeltaProjections::whole_channels) return decays_of_ling(e, n, x);
  const Scope at(e, "forget_gate");
  const Value bias = e.cast(e.parameter("dt_bias", {x.last()}), DType::f32);
  const Value decay =
      e.apply(e.cast(e.parameter("A_log", {1, 1, n.key_heads, 1}), DType::f32), Keeps::result);
  const Value sum = e.add(e.cast(x, DType::f32), bias);
  const Value grown = e.scaled(e.apply(sum, Keeps::result));
  e.apply(grown, Keeps::input);
  e.save(e.constant(DType::boolean, sum.shape));  // of which the logarithm is taken
  e.multiply(e.scaled(decay), e.make(sum.shape, DType::f32, true));
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
  const Value beta = e.apply(p.b, Keeps::result);
  e.save(beta);
  if (n.doubled_steps) e.save(e.scaled(beta));
  decays(e, n, p.a);
  save_rule(e, n, x);
  const std::int64_t state = e.times(n.value_heads * n.key_dim, n.value_dim);
  const DType of_state = n.by_channel() ? DType::f32 : e.dtype();
  e.cache(0, e.times(channels * n.kernel, size_of(e.dtype()).count()) +
                 e.times(state, size_of(of_state).count()));
  const std::int64_t rows = x.shape[0] * x.shape[1] * n.value_heads;
  const Value core = e.make({rows, n.value_dim}, e.dtype(), true);
  const Value normed = gated_norm(e, n, core, Eager::view(p.z, core.shape));
  return run_linear(e, n.out, Eager::view(normed, p.z.shape), x.last(), false);
}

}  // namespace shardsim::models
