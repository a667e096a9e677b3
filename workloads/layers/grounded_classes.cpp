#include "workloads/layers/grounded_classes.hpp"

namespace shardsim::models {

Node draw(Sketch& s, const GroundedClasses& /*g*/, Node rows, Node text) {
  const Axis width{"class_width", s.axes_of(text).back().size}, texts{"texts", 1};
  const Axes places{s.batch(), s.sequence()};
  const Axes logits{s.batch(), s.sequence(), texts};
  // Quotients by a length keep as much as this norm does.
  const auto of_length_one = [&](const char* name, Node x) {
    return s.norm({NormKind::rms_fixed, name}, x, {s.axes_of(x).back()});
  };
  const Node classes =
      of_length_one("unit_classes", s.linear({"dense0", /*bias=*/true}, rows, {width}));
  const Node query = s.view(of_length_one("unit_texts", text), {s.batch(), texts, width});
  const Node products = s.product("scores", classes, query, logits);
  const Node shift = s.linear({"logit_shift", /*bias=*/true}, rows, {texts});
  // ELU keeps what it reads, as softplus does.
  const Node scale =
      s.apply(PointFunction::softplus, s.linear({"logit_scale", /*bias=*/true}, rows, {texts}));
  const Node made = s.multiply(s.add(products, shift), s.scaled(scale));
  s.keeps_numbers(DType::boolean, {s.batch(), texts});  // which texts are padding
  return s.cast(made, DType::f32);
}

Node draw(Sketch& s, const UnreadProducts& u, Node x) {
  s.unread_operations(2 * s.batch().size * s.batch().size * u.width);
  return x;
}

}  // namespace shardsim::models
