#include "workloads/models/graph/graph_context.hpp"

namespace shardsim::models {

TensorId add(GraphContext& c, const Mlp& m, TensorId x) {
  return add_last_product(c, m, add_inner(c, m, x));
}

TensorId add_inner(GraphContext& c, const Mlp& m, TensorId x) {
  const std::string at = c.inside(m.name);
  const LabelId ffn = c.label("ffn", m.width, LabelRole::width);
  const Dims wide{{c.batch}, {c.sequence}, {ffn}};
  const auto project = [&](const std::string& name) {
    const GraphBuilder::Within part(c.g, OpPart::first_product);
    return c.linear({GraphContext::inside(at, name), {ffn}, {c.hidden}, m.bias, m.conv1d}, x, wide);
  };
  TensorId inner = no_tensor;
  if (m.form == MlpForm::plain) {
    inner = c.activate(m.activation, at + ".act", project(m.up), at);
  } else if (m.form == MlpForm::gated) {
    TensorId gate = project(m.gate);
    if (m.sparse) {
      c.note("what counts of a sparse gate is found in one kernel, with the mean of its rows");
      gate = c.g.elementwise(Function::relu, at + ".largest", {gate});
    }
    if (m.wide) gate = c.g.cast(at + ".gate_fp32", gate, DType::f32);
    gate = c.activate(m.activation, at + ".act_fn", gate, at);
    TensorId up = project(m.up);
    if (m.wide) up = c.g.cast(at + ".up_fp32", up, DType::f32);
    inner = c.gated(at + ".product", gate, up);
    if (m.wide) inner = c.g.cast(at + ".product_cast", inner, c.g.compute_dtype());
  } else {
    const LabelId two = c.label("gate_up", 2);
    const TensorId both = [&] {
      const GraphBuilder::Within part(c.g, OpPart::first_product);
      const std::string up = GraphContext::inside(at, m.up);
      const TensorId made = c.linear({up, {two, ffn}, {c.hidden}, m.bias, m.conv1d}, x,
                                     {{c.batch}, {c.sequence}, {two}, {ffn}});
      return add_adapter(c, m.adapters, up + "_adapter_list", x, made, {two, ffn});
    }();
    if (m.clamped) c.note("the clamps of gates are done in the activation's kernel");
    const std::vector<TensorId> parts = c.g.split({at + ".gate", at + ".up"}, both, two);
    const TensorId gate = c.activate(m.activation, at + ".act_fn", parts[0], at);
    inner = c.gated(at + ".product", gate, parts[1]);
  }
  if (m.inner_dropout > 0) inner = c.dropped(at + ".inner_dropout", inner, m.inner_dropout);
  if (m.inner_norm.exists()) {
    inner = c.norm(m.inner_norm, GraphContext::inside(at, m.inner_norm.name), inner, {ffn});
  }
  return inner;
}

TensorId add_last_product(GraphContext& c, const Mlp& m, TensorId inner) {
  const std::string at = c.inside(m.name);
  const LabelId ffn = c.label("ffn", m.width, LabelRole::width);
  const GraphBuilder::Within part(c.g, OpPart::last_product);
  return c.linear(
      {GraphContext::inside(at, m.down), {c.hidden}, {ffn}, m.bias || m.down_bias, m.conv1d}, inner,
      c.stream());
}

}  // namespace shardsim::models
