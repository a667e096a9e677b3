#include "workloads/layers/deformable_attention.hpp"

namespace shardsim::models {

Node draw(Sketch& s, const DeformableAttention& a, Node x, Node memory, Node boxes) {
  const Axis hidden = s.axes_of(x).back(), heads = heads_axis(a.heads);
  const Axis dim{"head_dim", hidden.size / a.heads}, two{"coordinates", 2};
  const Axis samples{"samples", a.levels * a.points};
  const Axes queries{s.batch(), s.sequence()};
  const auto of_queries = [&](std::initializer_list<Axis> more) {
    Axes axes = queries;
    axes.insert(axes.end(), more);
    return axes;
  };
  const Node value =
      s.lies_by_example(s.linear({"value_proj", /*bias=*/true}, memory, {heads, dim}));
  Node grid = s.linear({"sampling_offsets", /*bias=*/true}, x, {heads, samples, two});
  if (a.scaled_points) grid = s.multiply(grid, s.buffer("n_points_scale", {samples}));
  if (a.of_boxes) {
    const std::vector<Node> parts = s.parts(boxes, {of_queries({two}), of_queries({two})});
    grid = s.add(s.scaled(s.multiply(s.scaled(grid), parts[1])), parts[0]);
  } else {
    grid = s.scaled(grid);
  }
  const Node weights = s.softmax(
      s.linear({"attention_weights", /*bias=*/true}, x, {heads, samples}), samples, /*fp32=*/false);
  const Node seen = s.sample("sampled", value, s.lies_by_example(s.scaled(grid)), two,
                             of_queries({heads, samples, dim}));
  const Node weighted = s.multiply(s.lies(seen), s.lies_by_example(weights));
  const Node context = s.lies(s.mean(weighted, samples));  // their sum, which keeps as little
  return s.linear({"output_proj", /*bias=*/true, 2}, context, {hidden});
}

Node draw(Sketch& s, const ChosenRows& c, Node value) {
  const Axes axes{s.batch(), {"place_sequence", c.count}, s.axes_of(value).back()};
  if (c.of_scores) {  // which class is the largest, and which rows
    s.keeps_numbers(DType::i64, {s.batch(), s.sequence()});
    s.keeps_numbers(DType::i64, {s.batch(), axes[1]});
  }
  return s.pick(value, axes, axes);
}

}  // namespace shardsim::models
