#include <fmt/format.h>

#include <deque>

#include "base/error.hpp"
#include "workloads/networks/network_graph.hpp"

namespace shardsim::models {
namespace {

class UnetGraph {
 public:
  UnetGraph(NetworkGraph& n, const UNet& net) : n_(n), net_(net) {}

  TensorId build(std::int64_t side, std::int64_t text) {
    n_.first_block("embedding");
    embed(text);
    x_ = n_.convolve("conv_in", around(net_.down.front().block.out, net_.first_kernel),
                     n_.input(net_.in, side));
    n_.live = {&x_.id, &time_};
    keep();
    down();
    middle();
    up();
    n_.next_block("head");
    x_ = n_.activate(net_.activation, "conv_act", n_.group_norm("conv_norm_out", net_.groups, x_));
    return n_.mean_loss(n_.convolve("conv_out", around(net_.out, net_.last_kernel), x_).id);
  }

 private:
  static Convolution around(std::int64_t out, std::int64_t kernel) {
    return {.out = out, .kernel = kernel, .padding = (kernel - 1) / 2};
  }

  // A row of a table for the class of each example.
  void add_classes() {
    GraphContext& c = n_.c;
    const TensorId numbers = c.g.input("class_labels", c.options.index_dtype, {{c.batch}});
    const Dims dims = c.g.dims_of(time_);
    const LabelId classes = c.label("classes", net_.classes);
    const TensorId table = c.g.parameter("class_embedding.weight", {{classes}, dims[1]});
    const TensorId rows = c.g.embedding("class_embedding", numbers, table, dims);
    time_ = c.g.elementwise(Function::add, "time_and_class", {time_, rows});
  }

  // The time and, where there are any, pooled text and sizes; the text's states.
  void embed(std::int64_t text) {
    GraphContext& c = n_.c;
    const std::int64_t numbers = net_.down.front().block.out;
    const auto input = [&](const char* name, std::int64_t width) {
      return c.g.input(name, c.g.compute_dtype(), {{c.batch}, {c.label(name, width)}});
    };
    time_ = n_.condition("time_embedding", input("time_numbers", numbers), net_.time_width,
                         net_.activation);
    if (net_.guidance_width > 0) {
      c.note("time_embedding.cond_proj does not run: it is stored and not trained");
      c.g.untrained_parameter(
          "time_embedding.cond_proj.weight",
          {{c.label("time_numbers", numbers)}, {c.label("guidance", net_.guidance_width)}});
    }
    if (net_.classes > 0) add_classes();
    if (net_.pooled_width > 0) {
      const TensorId pooled = n_.condition("add_embedding", input("pooled", net_.pooled_width),
                                           net_.time_width, net_.activation);
      time_ = c.g.elementwise(Function::add, "time_and_text", {time_, pooled});
    }
    GraphContext::Beside states{"encoder_states", no_tensor};
    states.sequence = c.label("text_sequence", text);
    states.keys = c.label("key_text_sequence", text);
    states.hidden = c.label("text_width", net_.text_width);
    if (net_.read_width > 0) {
      throw InputError(c.place,
                       "encoder_hid_dim: steps of a network that projects the text's states are "
                       "not supported; `shardsim model` counts it");
    }
    states.id = c.g.input("encoder_hidden_states", c.g.compute_dtype(),
                          {{c.batch}, {states.sequence}, {states.hidden}});
    c.beside = {states};
  }

  // What the way up reads beside its own.
  void keep() {
    skips_.push_back(x_);
    n_.live.push_back(&skips_.back().id);
  }

  void block(const UNetLevel& level, std::int64_t i) {
    const std::string residual = fmt::format("resnets.{}", i);
    x_ = n_.residual(n_.c.inside(residual), level.block, x_, time_);
    if (level.transformer) {
      x_ = n_.transformer(fmt::format("attentions.{}", i), level.transformer_of(i), x_);
    }
  }

  void down() {
    for (std::size_t l = 0; l < net_.down.size(); ++l) {
      n_.next_layers("down_blocks", {static_cast<std::int32_t>(l)});
      for (std::int64_t i = 0; i < net_.down[l].blocks; ++i) {
        block(net_.down[l], i);
        keep();
      }
      if (l + 1 < net_.down.size()) {
        x_ = n_.halve(n_.c.inside("downsamplers.0"), x_, /*one_side=*/false);
        keep();
      }
    }
  }

  void middle() {
    if (!net_.middle) return;
    const UNetLevel& level = *net_.middle;
    const auto residual = [&](std::int64_t i) {
      n_.next_layers("mid_block.resnets", {static_cast<std::int32_t>(i)});
      x_ = n_.residual(n_.c.layer, level.block, x_, time_);
    };
    residual(0);
    for (std::int64_t i = 0; i < level.blocks; ++i) {
      if (level.transformer) {
        n_.next_layers("mid_block.attentions", {static_cast<std::int32_t>(i)});
        x_ = n_.transformer("", level.transformer_of(i), x_);
      }
      residual(i + 1);
    }
  }

  void up() {
    for (std::size_t l = 0; l < net_.up.size(); ++l) {
      n_.next_layers("up_blocks", {static_cast<std::int32_t>(l)});
      for (std::int64_t i = 0; i < net_.up[l].blocks; ++i) {
        x_ = n_.beside(n_.c.inside(fmt::format("resnets.{}.input", i)), x_, skips_.back());
        n_.live.pop_back();
        skips_.pop_back();
        block(net_.up[l], i);
      }
      if (l + 1 < net_.up.size()) x_ = n_.double_size(n_.c.inside("upsamplers.0"), x_);
    }
    n_.live = {&x_.id};
    n_.c.beside.clear();
  }

  NetworkGraph& n_;
  const UNet& net_;
  Picture x_;
  TensorId time_ = no_tensor;
  std::deque<Picture> skips_;
};

}  // namespace

TensorId add(NetworkGraph& n, const UNet& net, std::int64_t side) {
  return UnetGraph(n, net).build(side, usual_text(net));
}

}  // namespace shardsim::models
