#include "workloads/layers/mamba.hpp"

#include "workloads/layers/mlp.hpp"

namespace shardsim::models {
namespace {

// Depthwise, over time; its weight lies as torch's Conv1d has it.
void convolution_parameters(Eager& e, std::int64_t channels, std::int64_t kernel, bool bias) {
  const Scope at(e, "conv1d");
  e.parameter("weight", {channels, 1, kernel});
  if (bias) e.parameter("bias", {channels});
}

// Of a matrix that a fused kernel multiplies by: `times_backward` products in the backward pass.
void count_fused_matmul(Eager& e, std::int64_t tokens, std::int64_t in, std::int64_t out,
                        int times_backward) {
  const std::int64_t flops = e.times(e.times(2 * tokens, in), out);
  e.count("mm", flops, "mm", e.times(flops, times_backward));
}

// States that the scan leaves for the backward pass, every 2,048 tokens.
void save_scan_states(Eager& e, const Mamba& m, const Value& x) {
  constexpr std::int64_t step = 2048;
  const std::int64_t steps = (x.shape[1] + step - 1) / step;
  e.save(e.constant(DType::f32, {x.shape[0], m.inner, steps, 2 * m.state}));
}

struct Projected {
  Value xz;
  Value a;  // -exp(A_log)
  Value skip, step_bias;
};

Projected begin(Eager& e, const Mamba& m, const Value& x) {
  Projected p;
  convolution_parameters(e, m.inner, m.kernel, m.conv_bias);
  p.xz = run_linear(e, "in_proj", x, 2 * m.inner, m.bias);
  const std::int64_t each = m.heads > 0 ? m.inner / m.heads : 0;
  const Shape of_channels = m.heads > 0 ? Shape{m.heads, each} : Shape{m.inner};
  Shape of_states = of_channels;
  of_states.push_back(m.state);
  const Value log = e.cast(e.parameter("A_log", of_states), DType::f32);
  p.a = e.scaled(e.apply(log, Keeps::result));
  p.skip = e.cast(e.parameter("D", of_channels), DType::f32);
  return p;
}

Value step_weight(Eager& e, const Mamba& m, Projected& p) {
  const Scope at(e, "dt_proj");
  p.step_bias = e.cast(e.parameter("bias", {m.inner}), DType::f32);
  return e.parameter("weight", {m.inner, m.step_rank});
}

Value run_fused(Eager& e, const Mamba& m, const Value& x, Projected& p) {
  const std::int64_t tokens = x.shape[0] * x.shape[1];
  const std::int64_t narrow = m.step_rank + 2 * m.state;
  {
    const Scope at(e, "x_proj");
    e.parameter("weight", {narrow, m.inner});
  }
  count_fused_matmul(e, tokens, m.inner, narrow, 2);
  step_weight(e, m, p);
  count_fused_matmul(e, tokens, m.step_rank, m.inner, 3);  // one more: step sizes are made again
  e.save(p.xz);
  e.save(e.make({tokens, narrow}, e.dtype(), true));
  e.save(p.a);
  for (int i = 0; i < 2; ++i) e.save(e.make({x.shape[0], 1, m.state, x.shape[1]}, e.dtype(), true));
  e.save(p.skip);
  e.save(p.step_bias);
  save_scan_states(e, m, x);
  e.save(e.make({x.shape[0], m.inner, x.shape[1]}, e.dtype(), true));
  {
    const Scope at(e, "out_proj");
    e.parameter("weight", {x.last(), m.inner});
    if (m.bias) e.parameter("bias", {x.last()});
  }
  count_fused_matmul(e, tokens, m.inner, x.last(), 2);
  return e.make(x.shape, e.dtype(), true);
}

Value run_apart(Eager& e, const Mamba& m, const Value& x, Projected& p) {
  const Shape by_token{x.shape[0], x.shape[1], m.inner};
  const auto part = [&](const Value& of, std::int64_t width) {
    return Eager::view(of, {x.shape[0], x.shape[1], width});
  };
  e.save(p.xz);
  const Value mixed = e.make(by_token, e.dtype(), true);
  const Value narrow = run_linear(e, "x_proj", mixed, m.step_rank + 2 * m.state, false);
  const Value step = run(e, {NormKind::rms, "dt_layernorm"}, part(narrow, m.step_rank));
  const Value b = run(e, {NormKind::rms, "b_layernorm"}, part(narrow, m.state));
  const Value c = run(e, {NormKind::rms, "c_layernorm"}, part(narrow, m.state));
  const Value steps = e.linear(step, step_weight(e, m, p));
  for (const Value& kept : {e.copy(mixed), steps, p.a, e.copy(b), e.copy(c), p.skip,
                            e.copy(p.xz, by_token), p.step_bias}) {
    e.save(kept);
  }
  save_scan_states(e, m, x);
  e.save(e.make(by_token, e.dtype(), true));
  return run_linear(e, "out_proj", e.make(by_token, e.dtype(), true), x.last(), m.bias);
}

// Heads' products with matrices of their own, which torch repeats for several examples, and scans.
Value run_heads(Eager& e, const Mamba& m, const Value& x, Projected& p) {
  const std::int64_t batch = x.shape[0], tokens = x.shape[1];
  const std::int64_t each = m.inner / m.heads, narrow = m.step_rank + 2 * m.state;
  const Shape by_token{batch, tokens, m.inner};
  const auto repeated = [&](const Value& weight) {
    Shape shape = weight.shape;
    shape.insert(shape.begin() + 1, batch);
    return batch > 1 ? e.copy(weight, shape) : weight;
  };
  e.save(e.copy(p.xz, by_token));
  const Value mixed = e.make(by_token, e.dtype(), true);
  const Value all = e.bmm(repeated(e.parameter("x_proj_weight", {m.heads, narrow, each})),
                          batch > 1 ? e.copy(mixed) : mixed, narrow, each, tokens,
                          {m.heads, batch, narrow, tokens});
  const Value steps = e.bmm(repeated(e.parameter("dt_proj_weight", {m.heads, each, m.step_rank})),
                            all, each, m.step_rank, tokens, {m.heads, batch, each, tokens});
  const Value bias = e.cast(e.parameter("dt_proj_bias", {m.heads, each}), DType::f32);
  const Value z = e.copy(p.xz, by_token);
  for (const Value& kept : {mixed, steps, p.a, all, p.skip, z, bias}) e.save(kept);
  save_scan_states(e, m, x);
  e.save(e.make(by_token, e.dtype(), true));
  return run_linear(e, "out_proj", e.make(by_token, e.dtype(), true), x.last(), m.bias);
}

}  // namespace

Value run(Eager& e, const Mamba& m, const Value& x) {
  const Scope at(e, m.name);
  constexpr std::int64_t scan_operations = 9;
  const std::int64_t tokens = x.shape[0] * x.shape[1];
  e.count_scan(e.times(e.times(scan_operations * tokens, m.inner), m.state));
  e.cache(0, e.times(e.times(m.inner, m.kernel + m.state), size_of(e.dtype()).count()));
  Projected p = begin(e, m, x);
  if (m.heads > 0) return run_heads(e, m, x, p);
  return m.norms ? run_apart(e, m, x, p) : run_fused(e, m, x, p);
}

Value run(Eager& e, const Mamba2& m, const Value& x) {
  const Scope at(e, m.name);
  const std::int64_t tokens = x.shape[0] * x.shape[1];
  const std::int64_t inner = m.inner();
  const std::int64_t channels = inner + 2 * m.groups * m.state;
  convolution_parameters(e, channels, m.kernel, m.conv_bias);
  Value all = run_linear(e, "in_proj", x, inner + channels + m.heads, m.bias);
  if (m.scaled_projection) all = e.scaled(all);
  e.parameter("dt_bias", {m.heads});
  e.parameter("D", {m.heads});
  const Value log = e.cast(e.parameter("A_log", {m.heads}), DType::f32);
  const Value a = e.scaled(e.apply(log, Keeps::result));
  for (const Value& kept : {all, e.make({tokens, inner}, e.dtype(), true), a}) e.save(kept);
  if (m.norm) {
    const Scope of_norm(e, "norm");
    e.parameter("weight", {inner});
    e.save(e.constant(DType::f32, {tokens, m.groups}));
  }
  const std::int64_t in_chunks = e.times(2 * m.chunk, m.groups * m.state + inner);
  const std::int64_t state = e.times(inner, m.state);
  e.count_scan(e.times(tokens, in_chunks + e.times(4, state)));
  e.cache(0, e.times(e.times(channels, m.kernel) + state, size_of(e.dtype()).count()));
  const Scope out(e, "out_proj");
  e.parameter("weight", {x.last(), inner});
  if (m.out_bias) e.parameter("bias", {x.last()});
  count_fused_matmul(e, tokens, inner, x.last(), 2);
  return e.make(x.shape, e.dtype(), true);
}

}  // namespace shardsim::models
