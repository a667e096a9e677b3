#include "workloads/layers/per_layer_input.hpp"

#include "workloads/layers/activation.hpp"
#include "workloads/layers/mlp.hpp"

namespace shardsim::models {

Value run(Eager& e, const PerLayerInputs& inputs, const Value& ids, const Value& x,
          std::int64_t layers) {
  const Shape by_layer{x.shape[0], x.shape[1], layers, inputs.width};
  const std::int64_t all = e.times(layers, inputs.width);
  Value rows;
  {
    const Scope at(e, inputs.table);
    const Value numbers = inputs.made_ids ? e.constant(DType::i64, ids.shape) : ids;
    rows = e.scaled(e.embedding(numbers, e.embedding_table("weight", {inputs.vocab, all})));
  }
  const Value projected = e.scaled(run_linear(e, inputs.project, x, all, /*bias=*/false));
  const Value normed = run(e, inputs.norm, Eager::view(projected, by_layer));
  return e.scaled(e.add(normed, Eager::view(rows, by_layer)));
}

Value run(Eager& e, const PerLayerGate& gate, const Value& x, const Context& context) {
  const Value open =
      activate(e, gate.activation, run_linear(e, gate.gate, x, gate.width, /*bias=*/false));
  const Value own = Eager::view(context.per_layer, open.shape);
  return run_linear(e, gate.project, e.multiply(open, own), x.last(), /*bias=*/false);
}

}  // namespace shardsim::models
