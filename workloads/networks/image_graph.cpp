#include "workloads/networks/image_graph.hpp"

#include <fmt/format.h>

#include <utility>

#include "workloads/networks/diffusers_attention.hpp"

namespace shardsim::models {
namespace {

// A module within another; the layer itself has no name.
std::string within(const std::string& scope, const std::string& module) {
  return scope.empty() ? module : GraphContext::inside(scope, module);
}

}  // namespace

void NetworkGraph::hand_on() {
  for (const TensorId* value : live) c.g.carry_out(*value);
  for (const GraphContext::Beside& value : c.beside) c.g.carry_out(value.id);
}

void NetworkGraph::take(const std::string& name) {
  int number = 0;
  for (TensorId* value : live) *value = c.g.carry_in(fmt::format("{}.input_{}", name, number++));
  for (GraphContext::Beside& value : c.beside) {
    value.id = c.g.carry_in(GraphContext::inside(name, value.name));
  }
}

void NetworkGraph::first_block(const std::string& name) {
  c.g.begin_block(name);
  c.layer.clear();
}

void NetworkGraph::next_layers(const std::string& prefix, std::vector<std::int32_t> numbers,
                               bool continues) {
  hand_on();
  if (!continues) c.g.end_stack();
  c.layer = prefix + ".{}";
  c.rotary.clear();
  c.g.begin_layers(c.layer, std::move(numbers));
  take(c.layer);
}

void NetworkGraph::next_block(const std::string& name) {
  hand_on();
  c.g.begin_block(name);
  c.layer.clear();
  take(name);
}

Picture NetworkGraph::input(std::int64_t channels, std::int64_t side) {
  Picture x{no_tensor, c.label("channels", channels), c.label("rows", side),
            c.label("columns", side)};
  x.id = c.g.input("images", c.g.compute_dtype(), dims(x));
  return x;
}

Picture NetworkGraph::convolve(const std::string& name, const Convolution& k, const Picture& x) {
  const auto places = [&](LabelId in) {
    return (c.g.label_size(in) + 2 * k.padding - k.kernel) / k.stride + 1;
  };
  Picture y{no_tensor, c.label("channels", k.out), c.label("rows", places(x.rows)),
            c.label("columns", places(x.columns))};
  const LabelId in = c.label("in_channels", c.g.label_size(x.channels));
  const LabelId height = c.label("kernel_rows", k.kernel);
  const LabelId width = c.label("kernel_columns", k.kernel);
  const TensorId weight = c.g.parameter(name + ".weight", {{y.channels}, {in}, {height}, {width}});
  const TensorId bias = k.bias ? c.g.parameter(name + ".bias", {{y.channels}}) : no_tensor;
  y.id = c.g.image_convolution(
      name, {x.id, {{c.batch}, {in, height, width}, {y.rows}, {y.columns}}}, weight, dims(y), bias);
  return y;
}

Picture NetworkGraph::group_norm(const std::string& name, std::int64_t groups, const Picture& x) {
  const LabelId group = c.label("groups", groups);
  const LabelId inside = c.label("group_channels", c.g.label_size(x.channels) / groups);
  Picture y = x;
  const TensorId weight = c.g.parameter(name + ".weight", {{x.channels}});
  const TensorId bias = c.g.parameter(name + ".bias", {{x.channels}});
  y.id = c.g.group_norm(name, {x.id, {{c.batch}, {group, inside}, {x.rows}, {x.columns}}}, weight,
                        bias, c.batch, group);
  return y;
}

Picture NetworkGraph::batch_norm(const std::string& name, const Picture& x) {
  c.note("batch norms are over each device's own examples");
  const Dims channels{{x.channels}};
  std::vector<TensorId> read;
  for (const char* which : {".weight", ".bias"}) {
    read.push_back(c.g.parameter(name + which, channels));
  }
  for (const char* which : {".running_mean", ".running_var"}) {
    read.push_back(c.g.buffer(name + which, c.g.compute_dtype(), channels));
  }
  Picture y = x;
  y.id = c.g.batch_norm(name, x.id, read);
  return y;
}

Picture NetworkGraph::activate(const std::string& activation, const std::string& name,
                               const Picture& x) {
  Picture y = x;
  y.id = c.activate(activation, name, x.id);
  return y;
}

Picture NetworkGraph::add(const std::string& name, const Picture& a, const Picture& b) {
  Picture sum = a;
  sum.id = c.g.elementwise(Function::add, name, {a.id, b.id});
  return sum;
}

Picture NetworkGraph::beside(const std::string& name, const Picture& a, const Picture& b) {
  Picture both = a;
  both.channels = c.label("channels", c.g.label_size(a.channels) + c.g.label_size(b.channels));
  both.id =
      c.g.concatenate(name, {a.id, b.id}, dims(both), {a.channels, b.channels, both.channels});
  return both;
}

Picture NetworkGraph::twice_as_large(const std::string& name, const Picture& x) {
  const LabelId below = c.label("repeated_rows", 2);
  const LabelId right = c.label("repeated_columns", 2);
  Picture y = x;
  y.rows = c.label("rows", 2 * c.g.label_size(x.rows));
  y.columns = c.label("columns", 2 * c.g.label_size(x.columns));
  const TensorId seen = c.g.expand(name + ".repeated", x.id,
                                   {{c.batch}, {x.channels}, {x.rows, below}, {x.columns, right}});
  y.id = c.g.copy(name, seen);
  return y;
}

void NetworkGraph::attend_among(std::int64_t places, std::int64_t width, LabelRole role) {
  c.sequence = c.label("place_sequence", places, role);
  c.key_sequence = c.label("key_place_sequence", places,
                           role == LabelRole::none ? LabelRole::none : LabelRole::key_sequence);
  c.hidden = c.label("hidden", width, LabelRole::hidden);
}

TensorId NetworkGraph::rows_of(const std::string& name, const Picture& x, LabelRole places) {
  attend_among(c.g.label_size(x.rows) * c.g.label_size(x.columns), c.g.label_size(x.channels),
               places);
  return c.g.rearranged(name, x.id, c.stream(),
                        {x.channels, x.rows, x.columns, c.sequence, c.hidden});
}

Picture NetworkGraph::picture_of(const std::string& name, TensorId rows, const Picture& like) {
  Picture y = like;
  y.id = c.g.rearranged(name, rows, dims(like),
                        {like.channels, like.rows, like.columns, c.sequence, c.hidden});
  return y;
}

Picture NetworkGraph::residual(const std::string& name, const ResidualBlock& block,
                               const Picture& x, TensorId time) {
  const auto within = [&](const char* module) { return GraphContext::inside(name, module); };
  const auto normed = [&](const char* module, const Picture& value) {
    const Picture y = group_norm(within(module), block.groups, value);
    return activate(block.activation, within(module) + ".act", y);
  };
  Picture out = convolve(within("conv1"), {.out = block.out}, normed("norm1", x));
  if (block.timed) {
    const TensorId active = c.activate(block.activation, within("time_act"), time);
    const TensorId shift =
        c.linear({within("time_emb_proj"), {out.channels}, c.g.dims_of(time).back(), /*bias=*/true},
                 active, {{c.batch}, {out.channels}});
    out.id = c.g.elementwise(Function::add, within("time_added"), {out.id, shift});
  }
  out = normed("norm2", out);
  out.id = c.dropped(within("dropout"), out.id, block.dropout);
  out = convolve(within("conv2"), {.out = block.out}, out);
  Picture shortcut = x;
  if (c.g.label_size(x.channels) != block.out) {
    shortcut = convolve(within("conv_shortcut"), {.out = block.out, .kernel = 1, .padding = 0}, x);
  }
  return add(within("sum"), out, shortcut);
}

TensorId NetworkGraph::text_block(const std::string& name, const ImageTransformer& t,
                                  TensorId rows) {
  const std::int64_t width = c.g.label_size(c.hidden);
  const auto normed = [&](const char* module) {
    const std::string full = c.inside(within(name, module));
    return c.norm({NormKind::layer, module, /*bias=*/true}, full, rows, {c.hidden});
  };
  const auto onto = [&](const char* module, TensorId out) {
    const std::string full = c.inside(within(name, module));
    out = c.dropped(full + ".dropout", out, t.dropout);
    rows = c.g.elementwise(Function::add, full + "_residual", {rows, out});
  };
  for (const char* module : {"attn1", "attn2"}) {
    const bool is_cross = module == std::string("attn2");
    Attention attention = diffusers_attention(within(name, module), t.heads, width / t.heads);
    attention.cross = is_cross || t.text_only;
    const GraphBuilder::Within of(c.g, OpModule::attention);
    onto(module, models::add(c, attention, normed(is_cross ? "norm2" : "norm1")));
  }
  const GraphBuilder::Within of(c.g, OpModule::mlp);
  onto("ff",
       models::add(c,
                   diffusers_mlp(within(name, "ff"), width, "gelu", MlpForm::fused_gate, t.dropout),
                   normed("norm3")));
  return rows;
}

Picture NetworkGraph::transformer(const std::string& name, const ImageTransformer& t,
                                  const Picture& x) {
  const auto full = [&](const char* module) { return c.inside(within(name, module)); };
  const std::int64_t width = c.g.label_size(x.channels);
  const Convolution pointwise{.out = width, .kernel = 1, .padding = 0};
  // Square products: the places' width before and behind them are two labels.
  const auto project = [&](const std::string& module, TensorId rows) {
    const LabelId in = c.label("projected", width);
    const TensorId seen =
        c.g.slices(module + ".input", rows, {{module + ".input", {{c.batch}, {c.sequence}, {in}}}},
                   {c.hidden, in})
            .front();
    return c.linear({module, {c.hidden}, {in}, /*bias=*/true}, seen, c.stream());
  };
  Picture normed = group_norm(full("norm"), t.groups, x);
  if (!t.linear) normed = convolve(full("proj_in"), pointwise, normed);
  TensorId rows = rows_of(full("rows"), normed);
  if (t.linear) rows = project(full("proj_in"), rows);
  for (std::int64_t i = 0; i < t.blocks; ++i) {
    rows = text_block(within(name, fmt::format("transformer_blocks.{}", i)), t, rows);
  }
  if (t.linear) rows = project(full("proj_out"), rows);
  Picture back = picture_of(full("places"), rows, x);
  if (!t.linear) back = convolve(full("proj_out"), pointwise, back);
  return add(full("sum"), back, x);
}

Picture NetworkGraph::halve(const std::string& name, const Picture& x, bool one_side) {
  const std::string full = GraphContext::inside(name, "conv");
  const std::int64_t width = c.g.label_size(x.channels);
  if (!one_side) return convolve(full, {.out = width, .stride = 2}, x);
  Picture padded = x;
  padded.rows = c.label("rows", c.g.label_size(x.rows) + 1);
  padded.columns = c.label("columns", c.g.label_size(x.columns) + 1);
  padded.id = c.g.concatenate(full + ".padded", {x.id}, dims(padded),
                              {x.rows, x.columns, padded.rows, padded.columns});
  return convolve(full, {.out = width, .stride = 2, .padding = 0}, padded);
}

Picture NetworkGraph::double_size(const std::string& name, const Picture& x) {
  return convolve(GraphContext::inside(name, "conv"), {.out = c.g.label_size(x.channels)},
                  twice_as_large(name, x));
}

TensorId NetworkGraph::condition(const std::string& name, TensorId x, std::int64_t width,
                                 const std::string& activation) {
  const LabelId made = c.label("condition", width);
  const LabelId inner = c.label("condition_inner", width);
  const auto within = [&](const char* module) { return GraphContext::inside(name, module); };
  const TensorId wide =
      c.linear({within("linear_1"), {inner}, c.g.dims_of(x).back(), true}, x, {{c.batch}, {inner}});
  return c.linear({within("linear_2"), {made}, {inner}, true},
                  c.activate(activation, within("act"), wide), {{c.batch}, {made}});
}

TensorId NetworkGraph::mean_loss(TensorId x) {
  c.note("the model has no loss of its own: a step's is the mean of its result");
  return c.g.mean("loss", x, {});
}

}  // namespace shardsim::models
