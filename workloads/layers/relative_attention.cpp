#include "workloads/layers/relative_attention.hpp"

#include <fmt/format.h>

namespace shardsim::models {
namespace {

class RelativeSketch {
 public:
  RelativeSketch(Sketch& s, const RelativeAttention& a, const Axis& hidden)
      : s_(s),
        hidden_(hidden),
        heads_(heads_axis(a.heads)),
        dim_{"head_dim", a.head_dim},
        distances_{"distances", 2 * s.tokens()},
        rate_(a.dropout) {}

  Node project(const std::string& name, Node x) {
    Axes rows = s_.axes_of(x);
    rows.pop_back();
    rows.push_back(heads_);
    rows.push_back(dim_);
    return s_.product(name + ".product", x, matrix(name), rows);
  }

  // u or v, added to what each head asks for.
  Node shifted(Node q, const std::string& name) {
    return s_.add(q, s_.parameter(name, {heads_, dim_}));
  }

  Node of_contents(Node q, Node k) { return s_.product("content_scores", q, s_.seen(k), pairs()); }

  Node of_distances(Node q) {
    // Cast in each layer; that some are dropped keeps nothing, for they learn nothing.
    const Node sines = s_.constant(DType::bf16, {s_.batch(), distances_, hidden_});
    const Node rows = project("r", sines);
    const Node all =
        s_.product("distance_scores", q, rows, {s_.batch(), heads_, s_.sequence(), distances_});
    return s_.pick(all, {s_.sequence()}, pairs());
  }

  Node context(Node scores, Node v) {
    const Node left = s_.dropout(rate_, s_.softmax(s_.scaled(scores), s_.keys(), /*fp32=*/false));
    return s_.lies(
        s_.product("context", left, s_.seen(v), {s_.batch(), s_.sequence(), heads_, dim_}));
  }

  Node out(Node context) {
    return s_.product("o.product", context, s_.lies(matrix("o")),
                      {s_.batch(), s_.sequence(), hidden_});
  }

  void segments() {
    s_.idle_parameter("r_s_bias", {heads_, dim_});
    s_.idle_parameter("seg_embed", {{"segments", 2}, heads_, dim_});
  }

 private:
  [[nodiscard]] Axes pairs() const { return {s_.batch(), heads_, s_.sequence(), s_.keys()}; }
  Node matrix(const std::string& name) { return s_.parameter(name, {hidden_, heads_, dim_}); }

  Sketch& s_;
  Axis hidden_, heads_, dim_, distances_;
  double rate_;
};

}  // namespace

Node draw(Sketch& s, const RelativeAttention& a, Node x) {
  const Sketch::In in(s, a.name);
  RelativeSketch relative(s, a, s.axes_of(x).back());
  const Node q = relative.project("q", x);
  const Node k = relative.project("k", x);
  const Node v = relative.project("v", x);
  const Node contents = relative.of_contents(relative.shifted(q, "r_w_bias"), k);
  const Node distances = relative.of_distances(relative.shifted(q, "r_r_bias"));
  relative.segments();
  return relative.out(relative.context(s.add(contents, distances), v));
}

std::string to_text(const RelativeAttention& a) {
  return fmt::format("attention with distances, {} heads of {}, both ways", a.heads, a.head_dim);
}

}  // namespace shardsim::models
