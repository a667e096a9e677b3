#include <fmt/format.h>

#include "workloads/networks/network_graph.hpp"

namespace shardsim::models {
namespace {

class ConvNextGraph {
 public:
  ConvNextGraph(NetworkGraph& n, const ConvNext& net) : n_(n), c_(n.c), net_(net) {}

  TensorId build(std::int64_t side) {
    n_.first_block("embeddings");
    const std::string at = net_.prefix + "embeddings.";
    const Convolution patches{
        .out = net_.stages.front().width, .kernel = net_.patch, .stride = net_.patch, .padding = 0};
    x_ = n_.convolve(at + "patch_embeddings", patches, n_.input(net_.channels, side));
    norm(at + "layernorm");
    n_.live = {&x_.id};
    bool is_first = true;
    for (std::size_t s = 0; s < net_.stages.size(); ++s) {
      n_.next_layers(net_.prefix + "encoder.stages", {static_cast<std::int32_t>(s)});
      if (s > 0) {
        norm(c_.inside("downsampling_layer.0"));
        x_ = n_.convolve(c_.inside("downsampling_layer.1"),
                         {.out = net_.stages[s].width, .kernel = 2, .stride = 2, .padding = 0}, x_);
      }
      for (std::int64_t i = 0; i < net_.stages[s].layers; ++i) {
        layer(c_.inside(fmt::format("layers.{}", i)), net_.drop_path > 0 && !is_first);
        is_first = false;
      }
    }
    n_.next_block("head");
    TensorId mean = c_.g.mean("pooler", x_.id, {{c_.batch}, {x_.channels}});
    mean = c_.norm({NormKind::layer, "layernorm", /*bias=*/true}, net_.prefix + "layernorm", mean,
                   {x_.channels});
    const LabelId classes = c_.label("classes", c_.spec.head.vocab);
    const TensorId logits = c_.linear({c_.spec.head.name, {classes}, {x_.channels}, /*bias=*/true},
                                      mean, {{c_.batch}, {classes}});
    return c_.cross_entropy(logits, classes, /*fp32=*/false);
  }

 private:
  void norm(const std::string& name) {
    x_.id = c_.norm({NormKind::layer, "norm", /*bias=*/true}, name, x_.id, {x_.channels});
  }

  [[nodiscard]] Dims of_width(LabelId width) const {
    return {{c_.batch}, {width}, {x_.rows}, {x_.columns}};
  }

  // Each channel with its own 7 x 7 places.
  TensorId convolve_each(const std::string& name) {
    constexpr std::int64_t kernel = 7;
    const LabelId height = c_.label("kernel_rows", kernel);
    const LabelId width = c_.label("kernel_columns", kernel);
    const TensorId weight =
        c_.g.parameter(name + ".weight", {{x_.channels}, {c_.label("one", 1)}, {height}, {width}});
    const TensorId bias = c_.g.parameter(name + ".bias", {{x_.channels}});
    return c_.g.image_convolution(
        name, {x_.id, {{c_.batch}, {x_.channels, height, width}, {x_.rows}, {x_.columns}}}, weight,
        of_width(x_.channels), bias);
  }

  // A channel's norm over places, beside the mean of all channels'.
  TensorId respond(const std::string& name, TensorId x, LabelId width) {
    const LabelId one = c_.label("one", 1);
    const auto parameter = [&](const char* which) {
      return c_.g.parameter(name + which, {{one}, {one}, {one}, {width}});
    };
    const TensorId squares = c_.g.elementwise(Function::multiply, name + ".squares", {x, x});
    const TensorId norms = c_.g.mean(name + ".norms", squares, {{c_.batch}, {width}});
    const TensorId ratio = c_.g.over_label(Function::normalize, name + ".ratio", norms, width);
    const TensorId answered = c_.g.elementwise(Function::multiply, name + ".answered", {x, ratio});
    const TensorId weighted =
        c_.g.elementwise(Function::multiply, name + ".weighted", {answered, parameter(".weight")});
    const TensorId moved =
        c_.g.elementwise(Function::add, name + ".moved", {weighted, parameter(".bias")});
    return c_.g.elementwise(Function::add, name + ".sum", {moved, x});
  }

  void layer(const std::string& name, bool drops) {
    const Picture before = x_;
    const GraphBuilder::Within of(c_.g, OpModule::mlp);
    x_.id = convolve_each(name + ".dwconv");
    norm(name + ".layernorm");
    const LabelId ffn = c_.label("ffn", 4 * c_.g.label_size(x_.channels), LabelRole::width);
    TensorId wide =
        c_.linear({name + ".pwconv1", {ffn}, {x_.channels}, /*bias=*/true}, x_.id, of_width(ffn));
    wide = c_.activate(net_.activation, name + ".act", wide);
    if (net_.responds) wide = respond(name + ".grn", wide, ffn);
    x_.id = c_.linear({name + ".pwconv2", {x_.channels}, {ffn}, /*bias=*/true}, wide,
                      of_width(x_.channels));
    if (net_.scaled) {
      const std::string scale = name + ".layer_scale_parameter";
      x_.id = c_.g.elementwise(Function::multiply, scale + ".scaled",
                               {x_.id, c_.g.parameter(scale, {{x_.channels}})});
    }
    if (drops && c_.options.drops) {
      const TensorId left = c_.g.input(name + ".drop_path", c_.g.compute_dtype(), {{c_.batch}});
      x_.id = c_.g.elementwise(Function::multiply, name + ".drop_path.left", {x_.id, left});
    }
    x_ = n_.add(name + ".residual", before, x_);
  }

  NetworkGraph& n_;
  GraphContext& c_;
  const ConvNext& net_;
  Picture x_;
};

}  // namespace

TensorId add(NetworkGraph& n, const ConvNext& net, std::int64_t side) {
  return ConvNextGraph(n, net).build(side);
}

}  // namespace shardsim::models
