#include "workloads/layers/matrix_memory.hpp"

#include <fmt/format.h>

namespace shardsim::models {

Node draw(Sketch& s, const MatrixMemory& m, Node x) {
  const Sketch::In in(s, "mlstm_layer");
  const Axis hidden = s.axes_of(x).back(), heads = heads_axis(m.heads);
  const Axis keys{"memory_keys", m.key_dim}, values{"memory_values", m.value_dim};
  const Node q = s.linear({"q", m.bias}, x, {heads, keys});
  const Node k = s.linear({"k", m.bias}, x, {heads, keys});
  const Node v = s.linear({"v", m.bias}, x, {heads, values});
  const Node out_gate = s.linear({"ogate_preact", m.bias}, x, {heads, values});
  const auto gate = [&](const char* name) {
    const Node logits = s.scaled(s.linear({name, /*bias=*/true}, x, {heads}));
    return s.scaled(s.apply(PointFunction::tanh, logits));
  };
  const Node input = gate("igate_preact");
  const Node forget = gate("fgate_preact");
  const Node seen = s.remember({.name = "memory",
                                .queries = q,
                                .keys = k,
                                .values = v,
                                .gates = {input, forget},
                                .heads = heads,
                                .chunk = m.chunk});
  Norm norm{NormKind::layer_cast, "multihead_norm", m.bias};
  norm.weight_shape = {m.heads * m.value_dim};
  const Node normed = s.norm(norm, seen, {values});
  const Node open = s.apply(PointFunction::sigmoid, out_gate);
  return s.linear({"out_proj", m.bias, 2}, s.multiply(open, normed), {hidden});
}

std::string to_text(const MatrixMemory& m) {
  return fmt::format("matrix memory, {} heads of {} x {}", m.heads, m.key_dim, m.value_dim);
}

}  // namespace shardsim::models
