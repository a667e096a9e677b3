#include "workloads/models/graph/graph_context.hpp"

// Of LFM2: channels are split over devices as the width of a feed-forward layer is.
//
//   in_proj   x[b, s, hidden] -> [b, s, 3, channels]: b, c and x, each of the stream's width
//   conv      of b * x, without silu; times c
//   out_proj  [hidden, channels]
namespace shardsim::models {

TensorId add(GraphContext& c, const ShortConvolution& m, TensorId x) {
  const std::string at = c.inside(m.name);
  const LabelId three = c.label("b_c_x", 3);
  const LabelId channels = c.label("conv_channels", c.g.label_size(c.hidden), LabelRole::width);
  const TensorId all =
      c.linear({GraphContext::inside(at, "in_proj"), {three, channels}, {c.hidden}, m.bias}, x,
               {{c.batch}, {c.sequence}, {three}, {channels}});
  const std::vector<TensorId> parts = c.g.split({at + ".b", at + ".c", at + ".x"}, all, three);
  const TensorId gated = c.g.elementwise(Function::multiply, at + ".b_x", {parts[0], parts[2]});
  const TensorId mixed = c.convolution(GraphContext::inside(at, "conv"), gated, {channels},
                                       m.kernel, m.bias, /*silu=*/false);
  const TensorId out = c.g.elementwise(Function::multiply, at + ".product", {parts[1], mixed});
  return c.linear({GraphContext::inside(at, "out_proj"), {c.hidden}, {channels}, m.bias}, out,
                  c.stream());
}

}  // namespace shardsim::models
