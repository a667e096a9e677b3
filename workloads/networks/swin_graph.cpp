#include <fmt/format.h>

#include <algorithm>

#include "workloads/networks/network_graph.hpp"

namespace shardsim::models {
namespace {

std::int64_t up_to(std::int64_t size, std::int64_t multiple) {
  return (size + multiple - 1) / multiple * multiple;
}

// Rows of a stage are [batch, place_sequence, hidden], those of its windows [batch, windows,
// places, hidden].
class SwinGraph {
 public:
  SwinGraph(NetworkGraph& n, const Swin& net) : n_(n), c_(n.c), net_(net) {}

  TensorId build(std::int64_t side) {
    n_.first_block("embedding");
    embed(up_to(side, net_.patch));
    n_.live = {&x_};
    bool is_first = true;
    for (std::size_t s = 0; s < net_.stages.size(); ++s) {
      n_.next_layers(net_.prefix + "encoder.layers", {static_cast<std::int32_t>(s)});
      for (std::int64_t i = 0; i < net_.stages[s].blocks; ++i) {
        block(fmt::format("blocks.{}", i), net_.stages[s].heads, i % 2 == 1 && side_ > net_.window,
              net_.drop_path > 0 && !is_first);
        is_first = false;
      }
      if (s + 1 < net_.stages.size()) merge();
    }
    n_.next_block("head");
    const std::string norm = net_.prefix + "layernorm";
    const TensorId normed = c_.norm(layer_norm("layernorm"), norm, x_, {c_.hidden});
    const TensorId mean = c_.g.mean("pooler", normed, {{c_.batch}, {c_.hidden}});
    const LabelId classes = c_.label("classes", c_.spec.head.vocab);
    const TensorId logits = c_.linear({c_.spec.head.name, {classes}, {c_.hidden}, /*bias=*/true},
                                      mean, {{c_.batch}, {classes}});
    return c_.cross_entropy(logits, classes, /*fp32=*/false);
  }

 private:
  static Norm layer_norm(const char* name) { return {NormKind::layer, name, /*bias=*/true}; }

  void embed(std::int64_t side) {
    const std::string at = net_.prefix + "embeddings";
    const Convolution patches{
        .out = net_.width, .kernel = net_.patch, .stride = net_.patch, .padding = 0};
    const Picture made =
        n_.convolve(at + ".patch_embeddings.projection", patches, n_.input(net_.channels, side));
    side_ = side / net_.patch;
    x_ = n_.rows_of(at + ".rows", made);
    x_ = c_.norm(layer_norm("norm"), at + ".norm", x_, {c_.hidden});
    if (net_.positions) {
      const TensorId table = c_.g.parameter(at + ".position_embeddings",
                                            {{c_.label("one", 1)}, {c_.sequence}, {c_.hidden}});
      x_ = c_.g.elementwise(Function::add, at + ".position_embeddings.added", {x_, table});
    }
    x_ = c_.dropped(at + ".dropout", x_, net_.dropout);
  }

  struct Windows {
    LabelId count, places, keys;
  };

  // A bias of the distances in a window, and of windows that are shifted a mask.
  TensorId bias(const std::string& at, const Windows& w, LabelId heads, bool shifted) {
    const std::string name = at + ".relative_position_bias.relative_position_bias_table";
    const std::int64_t span = 2 * net_.window - 1;
    const TensorId table = c_.g.parameter(name, {{c_.label("distances", span * span)}, {heads}});
    const TensorId numbers =
        c_.g.constant(name + ".numbers", c_.options.index_dtype, {{w.places}, {w.keys}});
    TensorId added = c_.g.embedding(name, numbers, table, {{w.places}, {w.keys}, {heads}});
    if (!shifted) return added;
    const TensorId mask =
        c_.g.constant(at + ".mask", c_.g.compute_dtype(), {{w.count}, {w.places}, {w.keys}});
    added = c_.g.expand(at + ".bias_of_windows", added, {{w.count}, {w.places}, {w.keys}, {heads}});
    return c_.g.elementwise(Function::add, at + ".masked_bias", {added, mask});
  }

  TensorId attend(const std::string& at, TensorId rows, const Windows& w, std::int64_t number,
                  bool shifted) {
    const GraphBuilder::Within of(c_.g, OpModule::attention);
    const LabelId heads = c_.label("heads", number, LabelRole::heads);
    const LabelId dim = c_.label("head_dim", c_.g.label_size(c_.hidden) / number);
    const auto project = [&](const char* module) {
      const GraphBuilder::Within part(c_.g, OpPart::input_projection);
      return c_.linear({GraphContext::inside(at, module), {heads, dim}, {c_.hidden}, net_.qkv_bias},
                       rows, {{c_.batch}, {w.count}, {w.places}, {heads}, {dim}});
    };
    const TensorId q = project("q_proj");
    const TensorId k = project("k_proj");
    const TensorId v = project("v_proj");
    const TensorId out = c_.g.attention(
        at + ".attention", q, k, v, dim, {{w.places, w.keys}},
        {.added = bias(at, w, heads, shifted), .drops = c_.drops(net_.attention_dropout)});
    const GraphBuilder::Within part(c_.g, OpPart::out_projection);
    return c_.linear({at + ".o_proj", {c_.hidden}, {heads, dim}, /*bias=*/true}, out,
                     {{c_.batch}, {w.count}, {w.places}, {c_.hidden}});
  }

  void block(const std::string& name, std::int64_t heads, bool shifted, bool drops) {
    const auto within = [&](const char* module) {
      return c_.inside(GraphContext::inside(name, module));
    };
    const std::int64_t window = std::min(net_.window, side_);
    const std::int64_t padded = up_to(side_, window);
    const Windows w{c_.label("windows", (padded / window) * (padded / window)),
                    c_.label("window_places", window * window),
                    c_.label("key_window_places", window * window)};
    const std::vector<LabelId> whole{c_.sequence, w.count, w.places};
    const TensorId normed =
        c_.norm(layer_norm("layernorm_before"), within("layernorm_before"), x_, {c_.hidden});
    const TensorId rows = c_.g.rearranged(within("windows"), normed,
                                          {{c_.batch}, {w.count}, {w.places}, {c_.hidden}}, whole);
    TensorId out = attend(within("attention"), rows, w, heads, shifted);
    out = c_.dropped(within("attention.dropout"), out, net_.dropout);
    out = c_.g.rearranged(within("rows"), out, c_.stream(), whole);
    if (drops && c_.options.drops) {
      const TensorId left = c_.g.input(within("drop_path"), c_.g.compute_dtype(), {{c_.batch}});
      out = c_.g.elementwise(Function::multiply, within("drop_path.left"), {out, left});
    }
    x_ = c_.g.elementwise(Function::add, within("attention_residual"), {x_, out});
    const GraphBuilder::Within of(c_.g, OpModule::mlp);
    Mlp mlp;
    mlp.name = GraphContext::inside(name, "mlp");
    mlp.width =
        static_cast<std::int64_t>(net_.mlp_ratio * static_cast<double>(c_.g.label_size(c_.hidden)));
    mlp.form = MlpForm::plain;
    mlp.activation = net_.activation;
    mlp.bias = true;
    mlp.up = "fc1";
    mlp.down = "fc2";
    const TensorId fed =
        add(c_, mlp,
            c_.norm(layer_norm("layernorm_after"), within("layernorm_after"), x_, {c_.hidden}));
    x_ = c_.g.elementwise(Function::add, within("mlp_residual"),
                          {x_, c_.dropped(within("mlp.dropout"), fed, net_.dropout)});
  }

  // 2 x 2 patches side by side, to half of their width.
  void merge() {
    const std::string at = c_.inside("downsample");
    const std::int64_t width = c_.g.label_size(c_.hidden);
    const LabelId sequence = c_.sequence;
    const LabelId hidden = c_.hidden;
    side_ = (side_ + 1) / 2;
    n_.attend_among(side_ * side_, 2 * width, LabelRole::none);
    const LabelId four = c_.label("merged", 4 * width);
    TensorId rows = c_.g.rearranged(at + ".rows", x_, {{c_.batch}, {c_.sequence}, {four}},
                                    {sequence, hidden, c_.sequence, four});
    rows = c_.norm(layer_norm("norm"), at + ".norm", rows, {four});
    x_ = c_.linear({at + ".reduction", {c_.hidden}, {four}}, rows, c_.stream());
  }

  NetworkGraph& n_;
  GraphContext& c_;
  const Swin& net_;
  std::int64_t side_ = 0;  // in patches
  TensorId x_ = no_tensor;
};

}  // namespace

TensorId add(NetworkGraph& n, const Swin& net, std::int64_t side) {
  return SwinGraph(n, net).build(side);
}

}  // namespace shardsim::models
