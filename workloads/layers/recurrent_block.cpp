#include "workloads/layers/recurrent_block.hpp"

#include <fmt/format.h>

#include "workloads/layers/activation.hpp"
#include "workloads/layers/mlp.hpp"

namespace shardsim::models {
namespace {

// sigmoid(x W + b), W a block for each head.
Value block_gate(Eager& e, const RecurrentBlock& b, const std::string& name, const Value& x) {
  const std::int64_t head = b.width / b.heads;
  const Value weight = e.parameter(name + "_weight", {b.heads, head, head});
  e.parameter(name + "_bias", {b.heads, head});
  const std::int64_t tokens = x.shape[0] * x.shape[1];
  const Value by_head = Eager::view(x, {b.heads, tokens, head});
  const Value logits = e.bmm(by_head, weight, tokens, head, head, by_head.shape, "baddbmm");
  return e.apply(e.copy(logits, x.shape), Keeps::result);
}

Value rg_lru(Eager& e, const RecurrentBlock& b, const Value& x) {
  const Scope at(e, "rg_lru");
  const Value factor = e.apply(e.parameter("recurrent_param", {b.width}), Keeps::input);
  // Examples behind one another do not lie together once the convolution's tail is cut off.
  const Value rows = x.shape[0] == 1 ? x : e.copy(x);
  const Value input_gate = block_gate(e, b, "input_gate", rows);
  const Value gate = block_gate(e, b, "recurrent_gate", rows);
  const Value log = e.multiply(e.scaled(gate), factor);
  const Value a = e.apply(log, Keeps::result);
  const Value square = e.apply(e.scaled(log), Keeps::result);
  const Value gated = e.multiply(x, input_gate);
  const Value starts = e.constant(DType::boolean, {1, x.shape[1], 1});  // of sequences, not
  const Value root = e.multiply(e.apply(e.scaled(square), Keeps::input), starts);
  e.multiply(gated, root);
  e.multiply(a, e.constant(DType::boolean, {1, x.shape[1], 1}));
  for (int i = 0; i < 2; ++i) e.save(e.make(x.shape, DType::f32, true));  // each token's a and h
  e.count_scan(e.times(rg_lru_operations * x.shape[0] * x.shape[1], b.width));
  return e.make(x.shape, e.dtype(), true);
}

}  // namespace

Value run(Eager& e, const RecurrentBlock& b, const Value& x) {
  const Scope at(e, b.name);
  const std::int64_t sequence = x.shape[1];
  const Value y = activate(e, b.activation, run_linear(e, "linear_y", x, b.width, /*bias=*/true));
  const Value in = run_linear(e, "linear_x", x, b.width, /*bias=*/true);
  Value mixed;
  {
    const Scope of(e, "conv_1d");
    const Value weight = e.parameter("weight", {b.width, 1, b.kernel});
    e.parameter("bias", {b.width});
    mixed = e.convolution(Eager::view(in, {x.shape[0], b.width, sequence}), weight,
                          {sequence + b.kernel - 1});
  }
  const Shape rows{x.shape[0], sequence, b.width};
  const Value states = rg_lru(e, b, Eager::view(mixed, rows));
  e.cache(0, e.times(b.width,
                     (b.kernel - 1) * size_of(e.dtype()).count() + size_of(DType::f32).count()));
  return run_linear(e, "linear_out", e.multiply(states, y), x.last(), /*bias=*/true);
}

}  // namespace shardsim::models
