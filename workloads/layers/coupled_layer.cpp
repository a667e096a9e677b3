#include "workloads/layers/coupled_layer.hpp"

#include <vector>

namespace shardsim::models {
namespace {

class CoupledSketch {
 public:
  CoupledSketch(Sketch& s, const CoupledLayer& l, Node x)
      : s_(s),
        l_(l),
        heads_(heads_axis(l.heads)),
        pairs_{s.batch(), heads_, s.sequence(), s.keys()},
        whole_(s.axes_of(x).back()),
        x_(x) {
    const std::int64_t places = whole_.size / (l.shrink + 1);
    const std::int64_t words = places * l.shrink;
    words_ = {"", "words_", {"words", words}, {"head_dim", words / l.heads}, l.width};
    places_ = {"layout_",
               "places_",
               {"places", places},
               {"places_dim", places / l.heads},
               l.width / l.shrink};
  }

  Node build() {
    const std::vector<Node> streams = s_.parts(x_, {{s_.batch(), s_.sequence(), words_.width},
                                                    {s_.batch(), s_.sequence(), places_.width}});
    const Sums sums = scores(streams[0], streams[1]);
    const Node words = branches(words_, streams[0], sums.words, sums.values_of_words);
    s_.forward_alone(l_.last);
    const Node places = branches(places_, streams[1], sums.places, sums.values_of_places);
    s_.forward_alone(false);
    return s_.join({words, places}, {s_.batch(), s_.sequence(), whole_});
  }

 private:
  struct Stream {
    std::string module;  // before its modules' names
    std::string op;
    Axis width, dim;
    std::int64_t mlp = 0;
  };
  struct Sums {
    Node words, places, values_of_words, values_of_places;
  };

  Node project(const Stream& of, const char* name, Node x) {
    return s_.lies_by_example(s_.linear({of.module + name, /*bias=*/true}, x, {heads_, of.dim}));
  }

  Node products(const Stream& of, Node x) {
    const Node q = project(of, "query", x);
    const Node k = s_.seen(project(of, "key", x));
    return s_.scaled(s_.product(of.op + "scores", q, k, pairs_));
  }

  Sums scores(Node words, Node places) {
    const Sketch::In attention(s_, "attention");
    const Sketch::In self(s_, "self");
    s_.forward_alone(l_.last);
    const Node values_of_places = s_.seen(project(places_, "value", places));
    s_.forward_alone(false);
    const Node of_places = products(places_, places);
    const Node values_of_words = s_.seen(project(words_, "value", words));
    const Node of_words = products(words_, words);
    return {s_.add(of_words, of_places), s_.add(of_places, of_words), values_of_words,
            values_of_places};
  }

  Node normed_sum(const std::string& module, const Stream& of, Node y, int in, Node x) {
    const Sketch::In at(s_, module);
    const Node out = s_.dropout(l_.dropout, s_.linear({"dense", /*bias=*/true, in}, y, {of.width}));
    return s_.norm({NormKind::layer, "LayerNorm", /*bias=*/true}, s_.add(out, x), {of.width});
  }

  Node branches(const Stream& of, Node x, Node scores, Node values) {
    Node y = no_node;
    {
      const Sketch::In attention(s_, "attention");
      const Node left =
          s_.dropout(l_.attention_dropout, s_.softmax(scores, s_.keys(), /*fp32=*/false));
      const Node context = s_.lies(
          s_.product(of.op + "context", left, values, {s_.batch(), s_.sequence(), heads_, of.dim}));
      y = normed_sum(of.module + "output", of, context, 2, x);
    }
    const Axis inner{of.op + "ffn", of.mlp, AxisRole::width};
    const Node up = s_.linear({of.module + "intermediate.dense", /*bias=*/true}, y, {inner});
    return normed_sum(of.module + "output", of, s_.activate(l_.activation, up), 1, y);
  }

  Sketch& s_;
  const CoupledLayer& l_;
  Axis heads_;
  Axes pairs_;
  Axis whole_;
  Node x_;
  Stream words_, places_;
};

}  // namespace

Node draw(Sketch& s, const CoupledLayer& l, Node x) { return CoupledSketch(s, l, x).build(); }

}  // namespace shardsim::models
