#include "workloads/layers/experts.hpp"

#include <fmt/format.h>

#include "workloads/layers/activation.hpp"

namespace shardsim::models {
namespace {

// Scores and the largest of them, [T, per_token].
Value largest(Eager& e, const Experts& m, Value logits, const Value& numbers) {
  const Shape top_shape = numbers.shape;
  const auto top_of = [&](const Value& scores) { return e.index(scores, numbers, top_shape); };
  switch (m.router.scores) {
    case RouterScores::softmax:
    case RouterScores::sigmoid:
    case RouterScores::sqrt_softplus: {
      if (m.router.scores == RouterScores::sqrt_softplus) logits = e.apply(logits, Keeps::input);
      if (m.router.scores == RouterScores::softmax && m.router.fp32_softmax.value_or(true)) {
        logits = e.cast(logits, DType::f32);
      }
      Value scores = e.apply(logits, Keeps::result);
      if (const Router& r = m.router; r.groups > 0) {
        const std::int64_t tokens = logits.shape[0];
        e.save(e.constant(DType::i64,
                          r.masked ? Shape{tokens, r.groups} : Shape{tokens, r.groups, 2}));
        e.save(e.constant(DType::i64, {tokens, r.chosen_groups}));
        if (!r.masked) e.save(e.constant(DType::boolean, scores.shape));
      }
      if (m.router.masked) {
        e.save(e.constant(DType::boolean, scores.shape));
        scores = e.scaled(scores);
      }
      return top_of(scores);
    }
    case RouterScores::sigmoid_of_picked:
      e.save(logits);  // gathered from, not sorted
      [[fallthrough]];
    case RouterScores::softmax_of_top: {
      const Value top = top_of(logits);
      const bool wide = m.router.fp32_softmax.value_or(false);
      return e.apply(wide ? e.cast(top, DType::f32) : top, Keeps::result);
    }
    case RouterScores::sigmoid_of_top: {
      const Value kept = e.copy(logits);
      static_cast<void>(top_of(logits));
      return top_of(e.cast(e.apply(e.cast(kept, DType::f32), Keeps::result), e.dtype()));
    }
    case RouterScores::sparse_mixer: {
      const Shape one{logits.shape[0], 1};
      for (std::int64_t i = 0; i < m.per_token; ++i) {
        e.save(e.constant(DType::boolean, logits.shape));
        const Value gates = e.apply(e.scaled(logits), Keeps::result);
        e.save(e.index(gates, e.constant(DType::i64, one), one));
        e.save(e.constant(DType::i64, one));  // of the largest
      }
      return e.make(top_shape, logits.dtype, true);
    }
  }
  return logits;
}

Value renormalized(Eager& e, Renormalize how, const Value& top) {
  if (how == Renormalize::no) return top;
  const Value sum = e.reduce_last(top);
  if (how == Renormalize::in_place) return e.divide(e.copy(top), sum);
  if (how == Renormalize::offset) return e.divide(top, e.scaled(sum));
  return e.divide(top, e.apply(sum, Keeps::input));
}

Value gated(Eager& e, const Experts& m, const Value& both) {
  const Shape shape{both.shape[0], m.width};
  const Value gate = Eager::view(both, shape);
  const Value up = Eager::view(both, shape);
  if (m.gate == ExpertsGate::plain) return activate(e, m.activation, both);
  if (m.gate == ExpertsGate::gated) return e.multiply(activate(e, m.activation, gate), up);
  if (m.gate == ExpertsGate::wide) {
    const Value open = activate(e, m.activation, e.cast(gate, DType::f32));
    return e.cast(e.multiply(open, e.cast(up, DType::f32)), both.dtype);
  }
  const Value clamped = e.apply(gate, Keeps::input);
  if (m.gate == ExpertsGate::limited) {
    return e.multiply(activate(e, m.activation, clamped), e.apply(up, Keeps::input));
  }
  const Value offset = e.scaled(e.apply(up, Keeps::input));
  const Value sigmoid = e.apply(e.scaled(clamped), Keeps::result);
  return e.multiply(offset, e.multiply(clamped, sigmoid));
}

// Of one product, as a stack [experts, out, in].
Value matrices(Eager& e, const Experts& m, const std::string& name, std::int64_t out,
               std::int64_t in) {
  const Shape stack{m.experts, out, in};
  if (m.matrices == ExpertMatrices::rows) {
    const std::int64_t hidden = out == m.width ? in : out;
    const Value rows =
        e.expert_parameter(name, {m.experts * m.width, hidden}, m.per_token, m.experts);
    return Eager::view(rows, stack);
  }
  if (m.matrices == ExpertMatrices::modules) {
    Value last;
    for (std::int64_t i = 0; i < m.experts; ++i) {
      const Scope at(e, fmt::format("expert_{}.{}", i, name));
      last = e.expert_parameter("weight", {out, in}, m.per_token, m.experts);
      if (m.bias) e.expert_parameter("bias", {out}, m.per_token, m.experts);
    }
    return Eager::view(last, stack);
  }
  return e.expert_parameter(name, m.transposed ? Shape{m.experts, in, out} : stack, m.per_token,
                            m.experts);
}

Value run_routed(Eager& e, const Experts& m, const Value& x, const Value& weights) {
  const Scope at(e, m.experts_name);
  const std::int64_t hidden = x.last();
  const std::int64_t rows = x.shape[0] * m.per_token;
  const std::int64_t inner = m.gate == ExpertsGate::plain ? m.width : 2 * m.width;
  const auto indices = [&] { return e.constant(DType::i64, {rows}); };
  Value selected = e.index(x, indices(), {rows, hidden});
  const Value row_weights = e.index(weights, indices(), {rows, 1});
  if (m.weights_on_input) selected = e.multiply(selected, row_weights);
  const Value offsets = e.constant(DType::i32, {m.experts});
  const Value expert_of_row = indices();
  const auto multiply = [&](const std::string& name, const Value& from, std::int64_t out) {
    const bool has_zeros = m.zeros > 0 && name == m.gate_up;
    const Value stack = has_zeros ? e.expert_parameter(name, {m.routed_to(), out, from.last()},
                                                       m.per_token, m.routed_to())
                                  : matrices(e, m, name, out, from.last());
    Value result = e.grouped_matmul(from, stack, offsets, out);
    if (m.bias && m.matrices == ExpertMatrices::stacked) {
      e.index(e.expert_parameter(name + "_bias", {m.experts, out}, m.per_token, m.experts),
              expert_of_row, {rows, out});
    }
    return result;
  };
  const Value product =
      m.gate_apart.empty()
          ? gated(e, m, multiply(m.gate_up, selected, inner))
          : e.multiply(activate(e, m.activation, multiply(m.gate_apart, selected, m.width)),
                       multiply(m.gate_up, selected, m.width));
  Value out = multiply(m.down, e.dropout(product, m.inner_dropout), hidden);
  if (!m.weights_on_input) out = e.multiply(out, row_weights);
  e.index(out, indices(), {rows, hidden});
  if (m.zeros > 0) {  // times their weights
    const std::int64_t others = x.shape[0] * m.zeros_per_token;
    const auto given = e.index(x, e.constant(DType::i64, {others}), {others, hidden});
    e.multiply(given, e.index(weights, e.constant(DType::i64, {others}), {others, 1}));
  }
  return e.make(x.shape, x.dtype, true);  // the sum over a token's experts
}

// What moves the choice, under a name in the module that is open; none where it is empty.
void correct(Eager& e, const Experts& m, const std::string& name) {
  if (name.empty()) return;
  if (!m.router.correction_is_parameter) {
    e.buffer(name, {m.routed_to()}, DType::bf16);
  } else {
    e.parameter(name, m.router.correction_flat ? Shape{m.experts} : Shape{1, m.experts});
  }
}

Value run_shared(Eager& e, const Experts& m, const Value& x) {
  Value out = run(e, *m.shared, x);
  if (m.shared_gate.empty()) return out;
  const Value gate = e.apply(run_linear(e, m.shared_gate, x, 1, false), Keeps::result);
  return e.multiply(gate, out);
}

// Of what the router reads; `numbers` of the experts that are picked.
Value weights_of(Eager& e, const Experts& m, const Value& x, const Value& numbers) {
  const Scope at(e, m.router.name);
  Value weight = e.parameter("weight", {m.routed_to(), x.last()},
                             m.router.fp32_weight ? DType::f32 : e.dtype());
  const Value bias = m.router.bias ? e.parameter("bias", {m.routed_to()}) : Value{};
  correct(e, m, m.router.correction_bias);
  if (!m.router.table.empty()) {
    e.buffer(m.router.table, {m.router.table_rows, m.per_token}, DType::i64);
  }
  Value input = x;
  if (m.router.fp32 || m.router.fp32_weight) {
    input = e.cast(x, DType::f32);
    weight = e.cast(weight, DType::f32);
  }
  Value logits = e.linear(input, weight, bias);
  if (m.router.fp32_logits) logits = e.cast(logits, DType::f32);
  const Value top = renormalized(e, m.router.renormalize, largest(e, m, logits, numbers));
  return m.router.cast_back ? e.cast(top, e.dtype()) : top;
}

}  // namespace

Value route(Eager& e, const Experts& m, const Value& x) {
  Value input = run(e, m.router.norm, x);
  if (!m.router.scale.empty()) {
    input = e.scaled(e.multiply(input, e.parameter(m.router.scale, {x.last()})));
  }
  const Value numbers = e.constant(DType::i64, {x.shape[0], m.visits()});
  Value top = weights_of(e, m, input, numbers);
  if (m.router.expert_scale.empty()) return top;
  const Value scales = e.parameter(m.router.expert_scale, {m.experts});
  return e.multiply(top, e.index(scales, numbers, numbers.shape));
}

Value run(Eager& e, const Experts& m, const Value& x) {
  const Value tokens = Eager::view(x, {e.elements(x.shape) / x.last(), x.last()});
  Value out;
  {
    const Scope at(e, m.name);
    correct(e, m, m.correction_bias);
    const Value weights = route(e, m, tokens);
    if (m.latent > 0) {
      const Value rows = run_linear(e, m.into_latent, tokens, m.latent, m.latent_bias);
      out =
          run_linear(e, m.out_of_latent, run_routed(e, m, rows, weights), x.last(), m.latent_bias);
    } else {
      out = run_routed(e, m, run(e, m.rows_norm, tokens), weights);
    }
    if (!m.out_bias.empty()) out = e.add(out, e.parameter(m.out_bias, {x.last()}));
    if (m.shared && !m.shared_outside) out = e.add(out, run_shared(e, m, tokens));
    if (m.shared_averaged) out = e.scaled(out);
  }
  if (m.shared_outside) out = e.add(out, run_shared(e, m, tokens));
  return Eager::view(out, x.shape);
}

}  // namespace shardsim::models
