#include "workloads/layers/convolved_attention.hpp"

#include <fmt/format.h>

namespace shardsim::models {
namespace {

class ConvolvedSketch {
 public:
  ConvolvedSketch(Sketch& s, const ConvolvedAttention& a, Node x)
      : s_(s),
        a_(a),
        x_(x),
        heads_(heads_axis(a.heads)),
        dim_{"head_dim", a.head_dim},
        taps_{"taps", a.kernel},
        rows_{s.batch(), s.sequence(), heads_, dim_} {}

  Node build() {
    const Node k = project("key"), v = project("value");
    const Node convolved = separable();
    const Node q = project("query");
    const Node taps = made_taps(s_.multiply(convolved, q));
    const Node mixed = neighbours(taps);
    const Node seen = s_.lies(attend(q, k, v));
    const Axis two{"halves", 2};
    return s_.join({seen, mixed}, {s_.batch(), s_.sequence(), two, heads_, dim_});
  }

 private:
  Node project(const char* name) { return s_.linear({name, /*bias=*/true}, x_, {heads_, dim_}); }

  // Each channel over its neighbours, then a product over channels.
  Node separable() {
    const Sketch::In in(s_, "key_conv_attn_layer");
    const Node each = s_.convolve_each("depthwise", x_, a_.kernel);
    const Axis one{"groups", 1};
    const Axis hidden = s_.axes_of(x_).back();
    const Node wide =
        s_.view(each, {s_.batch(), s_.sequence(), one, {"group_channels", hidden.size}});
    const Node mixed = s_.view(s_.linear({"pointwise", false, 2, false, /*grouped=*/true}, wide,
                                         {one, {"group_results", a_.heads * a_.head_dim}}),
                               rows_);
    const Node bias = s_.parameter("bias", {{"all_heads", a_.heads * a_.head_dim}, {"one", 1}});
    return s_.add(mixed, s_.view(bias, {heads_, dim_}));
  }

  Node made_taps(Node contents) {
    // Of contents that lie channel by channel, as the convolution left them.
    const Node logits =
        s_.linear({.name = "conv_kernel_layer", .bias = true, .in = 2, .bias_apart = true},
                  contents, {heads_, taps_});
    return s_.softmax(logits, taps_, /*fp32=*/false);
  }

  // Rows of neighbours, of which each head sums up as its taps say.
  Node neighbours(Node taps) {
    const Node rows = project("conv_out_layer");
    const Node seen = s_.copy(rows, {s_.batch(), s_.sequence(), heads_, dim_, taps_});  // unfolded
    return s_.product("convolved", seen, taps, rows_);
  }

  Node attend(Node q, Node k, Node v) {
    const Axes scores{s_.batch(), heads_, s_.sequence(), s_.keys()};
    // One head of all lies as it is.
    const auto lies = [&](Node node) { return a_.heads > 1 ? s_.lies_by_example(node) : node; };
    const Node all = s_.scaled(s_.product("scores", lies(q), lies(s_.seen(k)), scores));
    const Node left = s_.dropout(a_.dropout, s_.softmax(all, s_.keys(), /*fp32=*/false));
    return s_.product("context", left, lies(s_.seen(v)), rows_);
  }

  Sketch& s_;
  const ConvolvedAttention& a_;
  Node x_;
  Axis heads_, dim_, taps_;
  Axes rows_;
};

}  // namespace

Node draw(Sketch& s, const ConvolvedAttention& a, Node x) {
  Node both = no_node;
  {
    const Sketch::In in(s, "attention.self");
    both = ConvolvedSketch(s, a, x).build();
  }
  return s.linear({"attention.output.dense", /*bias=*/true, 3}, both, {s.axes_of(x).back()});
}

std::string to_text(const ConvolvedAttention& a) {
  return fmt::format("attention of {} heads of {} beside convolutions of {}", a.heads, a.head_dim,
                     a.kernel);
}

}  // namespace shardsim::models
