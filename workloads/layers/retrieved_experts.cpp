#include "workloads/layers/retrieved_experts.hpp"

#include <fmt/format.h>

namespace shardsim::models {

Node draw(Sketch& s, const RetrievedExperts& m, Node x) {
  s.note("which rows a token's experts have is taken as even; the router's sums are in its kernel");
  const Sketch::In in(s, "mlp");
  const Axis hidden = s.axes_of(x).back();
  const Axis keys{"router_keys", m.keys}, sets{"key_sets", 2}, chosen{"chosen", m.per_token};
  const Axes tokens{s.batch(), s.sequence()};
  const Axes picks{s.batch(), s.sequence(), chosen};
  const Node scores = s.linear({"router_gate"}, x, {sets, keys});
  s.keeps_numbers(DType::i64, {s.batch(), s.sequence(), sets, keys});
  s.choose(s.view(scores, {s.batch(), s.sequence(), {"key_scores", 2 * m.keys}}),
           {"key_scores", 2 * m.keys}, m.per_token);
  const Node weights = s.softmax(s.view(scores, picks), chosen, /*fp32=*/false);
  // PyTorch keeps one array of numbers for both tables; here each keeps its own.
  const Axes table{{"experts", m.experts}, hidden};
  const Axes rows{s.batch(), s.sequence(), chosen, hidden};
  const Node down = s.look_up("down_embed", table, picks, rows);
  const Node up = s.look_up("up_embed", table, picks, rows);
  const Node open = s.activate(m.activation, s.product("down", down, x, picks));
  const Node of_experts =
      s.product("up", s.multiply(open, weights), up, {s.batch(), s.sequence(), hidden});
  const Axis width = width_axis(m.width);
  const Node gate = s.activate(m.activation, s.linear({"gate_proj", m.bias}, x, {width}));
  const Node inner = s.multiply(gate, s.linear({"up_proj", m.bias}, x, {width}));
  return s.add(s.linear({"down_proj", m.bias}, inner, {hidden}), of_experts);
}

std::string to_text(const RetrievedExperts& m) {
  return fmt::format("gated MLP of {}, {} of {} rows of tables beside it", m.width, m.per_token,
                     m.experts);
}

}  // namespace shardsim::models
