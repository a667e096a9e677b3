#include "workloads/layers/experts.hpp"

#include "workloads/layers/activation.hpp"

namespace shardsim::models {
namespace {

struct Routing {
  Value weights;  // [T, per_token]
};

Value router_scores(Eager& e, const Experts& m, const Value& logits) {
  switch (m.router.scores) {
    case RouterScores::softmax:
      return e.apply(e.cast(logits, DType::f32), Keeps::result);
    case RouterScores::softmax_bf16:
    case RouterScores::sigmoid:
      return e.apply(logits, Keeps::result);
    case RouterScores::softmax_of_top:
      return logits;
  }
  return logits;
}

Routing route(Eager& e, const Experts& m, const Value& x) {
  const Scope at(e, m.router.name);
  const std::int64_t tokens = x.shape[0];
  Value weight = e.parameter("weight", {m.experts, x.last()});
  const Value bias = m.router.bias ? e.parameter("bias", {m.experts}) : Value{};
  if (!m.router.correction_bias.empty()) {
    e.buffer(m.router.correction_bias, {m.experts}, DType::bf16);
  }
  Value input = x;
  if (m.router.fp32) {
    input = e.cast(x, DType::f32);
    weight = e.cast(weight, DType::f32);
  }
  Value scores = router_scores(e, m, e.linear(input, weight, bias));
  if (m.router.masked) {
    e.save(e.constant(DType::boolean, scores.shape));
    scores = e.scaled(scores);
  }
  const Value chosen = e.constant(DType::i64, {tokens, m.per_token});
  Value top = e.index(scores, chosen, {tokens, m.per_token});
  if (m.router.scores == RouterScores::softmax_of_top) top = e.apply(top, Keeps::result);
  if (m.router.renormalize != Renormalize::no) {
    const Value sum = e.reduce_last(top);
    top = e.divide(m.router.renormalize == Renormalize::in_place ? e.copy(top) : top, sum);
  }
  if (m.router.cast_back) top = e.cast(top, e.dtype());
  return {top};
}

Value gated(Eager& e, const Experts& m, const Value& both) {
  const Shape shape{both.shape[0], m.width};
  const Value gate = Eager::view(both, shape);
  const Value up = Eager::view(both, shape);
  if (m.gate == ExpertsGate::plain) return activate(e, m.activation, both);
  if (m.gate == ExpertsGate::gated) return e.multiply(activate(e, m.activation, gate), up);
  const Value clamped = e.apply(gate, Keeps::input);
  const Value offset = e.scaled(e.apply(up, Keeps::input));
  const Value sigmoid = e.apply(e.scaled(clamped), Keeps::result);
  return e.multiply(offset, e.multiply(clamped, sigmoid));
}

Value run_routed(Eager& e, const Experts& m, const Value& x, const Value& weights) {
  const Scope at(e, m.experts_name);
  const std::int64_t hidden = x.last();
  const std::int64_t rows = x.shape[0] * m.per_token;
  const std::int64_t inner = m.gate == ExpertsGate::plain ? m.width : 2 * m.width;
  const auto indices = [&] { return e.constant(DType::i64, {rows}); };
  const auto matrix = [&](const std::string& name, std::int64_t out, std::int64_t in) {
    const Shape shape = m.transposed ? Shape{m.experts, in, out} : Shape{m.experts, out, in};
    return e.expert_parameter(name, shape, m.per_token);
  };
  const Value selected = e.index(x, indices(), {rows, hidden});
  const Value row_weights = e.index(weights, indices(), {rows, 1});
  const Value offsets = e.constant(DType::i32, {m.experts});
  const Value expert_of_row = indices();
  const auto multiply = [&](const std::string& name, const Value& from, std::int64_t out) {
    const Value result = e.grouped_matmul(from, matrix(name, out, from.last()), offsets, out);
    if (m.bias) {
      e.index(e.expert_parameter(name + "_bias", {m.experts, out}, m.per_token), expert_of_row,
              {rows, out});
    }
    return result;
  };
  const Value product = gated(e, m, multiply(m.gate_up, selected, inner));
  const Value out = e.multiply(multiply(m.down, product, hidden), row_weights);
  e.index(out, indices(), {rows, hidden});
  return e.make(x.shape, x.dtype, true);  // the sum over a token's experts
}

Value run_shared(Eager& e, const Experts& m, const Value& x) {
  Value out = run(e, *m.shared, x);
  if (m.shared_gate.empty()) return out;
  const Value gate = e.apply(run_linear(e, m.shared_gate, x, 1, false), Keeps::result);
  return e.multiply(gate, out);
}

}  // namespace

Value run(Eager& e, const Experts& m, const Value& x) {
  const Scope at(e, m.name);
  const Value tokens = Eager::view(x, {e.elements(x.shape) / x.last(), x.last()});
  const Routing routing = route(e, m, tokens);
  const Value out = run_routed(e, m, tokens, routing.weights);
  if (!m.shared) return Eager::view(out, x.shape);
  return Eager::view(e.add(out, run_shared(e, m, tokens)), x.shape);
}

}  // namespace shardsim::models
