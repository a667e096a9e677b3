#include "workloads/layers/recurrent_block.hpp"

#include "workloads/models/graph/graph_context.hpp"

// Griffin's recurrent block, split by heads of the recurrence, which lie in blocks of channels:
//
//   linear_x   x[b, s, hidden] -> [b, s, heads, dim]; linear_y likewise, then gelu
//   conv_1d    each channel by itself, without silu
//   gates      block-diagonal: [b, s, heads, dim] . [heads, dim, gate] + bias
//   rg_lru     sigmoids, a, the root and the recurrence in one kernel, as Griffin's own
//   linear_out [hidden, heads*dim]
//
// Steps of inference keep the last tokens of the convolution, one less than its taps, and the state
// of the recurrence (transformers 5.23, RecurrentGemmaRecurrentBlock); a decoding step moves both
// on by one token.
namespace shardsim::models {
namespace {

class RecurrentGraph {
 public:
  RecurrentGraph(GraphContext& c, const RecurrentBlock& b)
      : c_(c),
        b_(b),
        at_(c.inside(b.name)),
        heads_(c.label("lru_heads", b.heads, LabelRole::width)),
        dim_(c.label("lru_dim", b.width / b.heads)),
        gate_(c.label("lru_gate", b.width / b.heads)) {}

  TensorId build(TensorId x) {
    c_.note(
        "RG-LRU is one kernel, which makes its gates again in the backward pass; transformers' "
        "class goes token by token");
    const TensorId y = c_.activate(b_.activation, at_ + ".act_fn", project("linear_y", x));
    const TensorId in = project("linear_x", x);
    const TensorId mixed = c_.convolution(inside("conv_1d"), in, {heads_, dim_}, b_.kernel,
                                          /*bias=*/true, /*silu=*/false, b_.kernel - 1);
    const TensorId states = scan(mixed);
    const TensorId product = c_.g.elementwise(Function::multiply, at_ + ".product", {states, y});
    return c_.linear({inside("linear_out"), {c_.hidden}, {heads_, dim_}, /*bias=*/true}, product,
                     c_.stream());
  }

 private:
  [[nodiscard]] std::string inside(const std::string& name) const {
    return GraphContext::inside(at_, name);
  }
  [[nodiscard]] Dims by_head(LabelId last) const {
    return {{c_.batch}, {c_.sequence}, {heads_}, {last}};
  }

  TensorId project(const std::string& name, TensorId x) {
    return c_.linear({inside(name), {heads_, dim_}, {c_.hidden}, /*bias=*/true}, x, by_head(dim_));
  }

  // Logits of a gate, under the labels of what it lets through.
  TensorId logits(const std::string& gate, TensorId x) {
    const std::string name = inside("rg_lru." + gate);
    const TensorId weight = c_.g.parameter(name + "_weight", {{heads_}, {dim_}, {gate_}});
    const TensorId bias = c_.g.parameter(name + "_bias", {{heads_}, {gate_}});
    const TensorId out = c_.g.linear(name, x, weight, by_head(gate_), bias);
    return c_.g
        .slices(name + ".by_channel", out, {{name + ".by_channel", by_head(dim_)}}, {dim_, gate_})
        .front();
  }

  TensorId scan(TensorId x) {
    const TensorId param = c_.g.parameter(inside("rg_lru.recurrent_param"), {{heads_, dim_}});
    return c_.g.scan(
        c_.is_decoding() ? Function::state_update : Function::rg_lru, inside("rg_lru"),
        {.operands = {x, logits("input_gate", x), logits("recurrent_gate", x), param},
         .result = by_head(dim_),
         .kept = {},
         .whole = {c_.sequence},
         .work = {{static_cast<double>(rg_lru_operations), {c_.batch, c_.sequence, heads_, dim_}}},
         .state = state()});
  }

  // In fp32 (transformers 5, RecurrentGemmaRglru).
  GraphBuilder::State state() {
    if (!c_.options.cache) return {};
    const std::string name = inside("rg_lru") + ".state";
    return {c_.g.cache(name, DType::f32, {{c_.batch}, {heads_}, {dim_}}), c_.is_decoding()};
  }

  GraphContext& c_;
  const RecurrentBlock& b_;
  std::string at_;
  LabelId heads_, dim_, gate_;
};

}  // namespace

TensorId add(GraphContext& c, const RecurrentBlock& b, TensorId x) {
  return RecurrentGraph(c, b).build(x);
}

}  // namespace shardsim::models
