// Inputs of each layer beside the stream: all layers' lie in one tensor, [batch, sequence, layers,
// per_layer], which blocks hand on; a layer reads its own part of it.
#include "workloads/models/graph/graph_context.hpp"

namespace shardsim::models {

void add_per_layer_inputs(GraphContext& c, const Stack& stack, TensorId x) {
  const PerLayerInputs& inputs = *stack.per_layer;
  const LabelId layers = c.label("layers_of_inputs", static_cast<std::int64_t>(stack.order.size()));
  const LabelId width = c.label("per_layer", inputs.width);
  const LabelId vocab = c.label("vocab", inputs.vocab, LabelRole::vocab);
  const Dims by_layer{{c.batch}, {c.sequence}, {layers}, {width}};
  const TensorId ids = c.g.input("input_ids", c.options.index_dtype, {{c.batch}, {c.sequence}});
  const TensorId table = c.g.parameter(inputs.table + ".weight", {{vocab}, {layers, width}});
  const TensorId rows = c.g.elementwise(Function::scale, inputs.table + ".scaled",
                                        {c.g.embedding(inputs.table, ids, table, by_layer)});
  const TensorId projected = c.linear({inputs.project, {layers, width}, {c.hidden}}, x, by_layer);
  const TensorId scaled = c.g.elementwise(Function::scale, inputs.project + ".scaled", {projected});
  const TensorId normed = c.norm(inputs.norm, inputs.norm.name, scaled, {width});
  const TensorId sum = c.g.elementwise(Function::add, inputs.project + ".sum", {normed, rows});
  c.beside.push_back(
      {"per_layer_inputs", c.g.elementwise(Function::scale, "per_layer_inputs", {sum})});
  c.ended.insert("per_layer_inputs");
}

TensorId add(GraphContext& c, const PerLayerGate& gate, TensorId x) {
  const LabelId width = c.label("per_layer", gate.width);
  const std::string name = c.inside(gate.gate);
  const Dims rows{{c.batch}, {c.sequence}, {width}};
  const TensorId projected = c.linear({name, {width}, {c.hidden}}, x, rows);
  const TensorId open = c.activate(gate.activation, c.inside("per_layer_act_fn"), projected);
  const GraphContext::Beside* all = find_handed(c, "per_layer_inputs");
  const std::string own = c.inside("per_layer_input");
  const LabelId layers = c.g.dims_of(all->id)[2].front();
  const TensorId part = c.g.slices(own, all->id, {{own, rows}}, {layers}).front();
  const TensorId product =
      c.g.elementwise(Function::multiply, c.inside("per_layer_product"), {open, part});
  return c.linear({c.inside(gate.project), {c.hidden}, {width}}, product, c.stream());
}

}  // namespace shardsim::models
