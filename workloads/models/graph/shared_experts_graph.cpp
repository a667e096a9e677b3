// Experts that every token visits, beside those that it is routed to.
#include "workloads/models/graph/graph_context.hpp"

namespace shardsim::models {
namespace {

Mlp shared_mlp(const Experts& m) {
  Mlp mlp = *m.shared;
  const std::string module = m.shared_outside ? "" : m.name;
  mlp.name = module.empty() ? mlp.name : GraphContext::inside(module, mlp.name);
  return mlp;
}

}  // namespace

TensorId begin_shared_experts(GraphContext& c, const Experts& m, TensorId x) {
  const GraphBuilder::Within within(c.g, OpModule::shared_experts);
  const Mlp mlp = shared_mlp(m);
  const auto& exchange = c.options.exchange;
  if (exchange &&
      (exchange->shared_first || exchange->shared_beside || exchange->splits_sequence)) {
    // Gathered for them, where rows of the others stay as tokens lie (Megatron-Core; torchtitan's
    // PrepareModuleInputOutput of "moe").
    const std::string name = c.inside(mlp.name) + ".input";
    x = c.g.marked(c.g.slices(name, x, {{name, c.g.dims_of(x)}}, {}).front(), StreamMark::branch);
  }
  return add_inner(c, mlp, x);
}

TensorId end_shared_experts(GraphContext& c, const Experts& m, TensorId x, TensorId inner) {
  const GraphBuilder::Within within(c.g, OpModule::shared_experts);
  const TensorId out = add_last_product(c, shared_mlp(m), inner);
  if (m.shared_gate.empty()) return out;
  const std::string at = c.inside(m.shared_outside ? "" : m.name);
  const std::string name = GraphContext::inside(at, m.shared_gate);
  const LabelId one = c.label("one", 1);
  const TensorId gate = c.linear({name, {one}, {c.hidden}}, x, {{c.batch}, {c.sequence}, {one}});
  const TensorId open = c.g.elementwise(Function::sigmoid, name + ".open", {gate});
  return c.g.elementwise(Function::multiply, name + ".product", {out, open});
}

}  // namespace shardsim::models
