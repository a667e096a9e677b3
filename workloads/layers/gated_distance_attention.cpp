#include "workloads/layers/gated_distance_attention.hpp"

namespace shardsim::models {

Node draw(Sketch& s, const DistanceScores& d, Node /*x*/) {
  const Axis heads = heads_axis(d.heads);
  const Node rows = s.look_up(d.name, {{"buckets", d.buckets}, heads}, {s.sequence(), s.keys()},
                              {s.sequence(), s.keys(), heads});
  return s.copy(s.expand(s.view(rows, {heads, s.sequence(), s.keys()}),
                         {s.batch(), heads, s.sequence(), s.keys()}),
                {s.batch(), heads, s.sequence(), s.keys()});
}

namespace {

// A number for each token and head, of the token's part that is the head's. The sum of four
// products is their mean, which keeps as little.
Node distance_gate(Sketch& s, Node x, const Axis& heads, const Axis& dim) {
  const Axis two{"gates", 2}, four{"gate_parts", 4}, one{"gate", 1};
  const Axes by_heads{s.batch(), heads, s.sequence()};
  const auto with = [&](const Axis& last) {
    Axes axes = by_heads;
    axes.push_back(last);
    return axes;
  };
  const Node rows = s.lies(s.view(x, with(dim)));
  const Axis products{"gate_products", 8};
  const Node made = s.linear({"gru_rel_pos_linear", /*bias=*/true}, rows, {products});
  Axes parts = with(two);
  parts.push_back(four);
  const Node both = s.apply(PointFunction::sigmoid, s.mean(s.view(made, parts), four));
  const std::vector<Node> gates = s.parts(both, {with(one), with(one)});
  const Axis plain_one{"one", 1};
  const Node constant = s.view(
      s.parameter("gru_rel_pos_const", {plain_one, heads, {"one_row", 1}, one}), {heads, one});
  const Node inner = s.scaled(s.multiply(gates[1], constant));
  return s.view(s.scaled(s.multiply(gates[0], inner)), by_heads);
}

}  // namespace

Node draw(Sketch& s, const GatedDistanceAttention& a, Node x, Node distances) {
  const Axis hidden = s.axes_of(x).back();
  const Axis heads = heads_axis(a.heads), dim{"head_dim", hidden.size / a.heads};
  const Axes rows{s.batch(), s.sequence(), heads, dim};
  const Axes pairs{s.batch(), heads, s.sequence(), s.keys()};
  const Node gate = distance_gate(s, x, heads, dim);
  const Node bias = s.multiply(distances, gate);
  // Tokens lie before examples, so that each product copies what it reads.
  const auto project = [&](const char* name) {
    return s.linear({name, /*bias=*/true}, s.lies_by_example(x), {heads, dim});
  };
  const Node q = s.scaled(project("q_proj"));
  const Node k = s.seen(project("k_proj"));
  const Node v = s.seen(project("v_proj"));
  const Node scores = s.add(s.product("scores", q, k, pairs), bias);
  const Node left = s.dropout(a.dropout, s.softmax(scores, s.keys(), /*fp32=*/false));
  const Node out = s.lies(s.product("context", left, v, rows));
  return s.linear({"out_proj", /*bias=*/true, 2}, out, {hidden});
}

}  // namespace shardsim::models
