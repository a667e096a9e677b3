#include "workloads/networks/unet_blocks.hpp"

#include <fmt/format.h>

#include "workloads/layers/activation.hpp"
#include "workloads/layers/attention.hpp"
#include "workloads/layers/mlp.hpp"
#include "workloads/networks/diffusers_attention.hpp"

namespace shardsim::models {
namespace {

Attention image_attention(const std::string& name, std::int64_t heads, std::int64_t width,
                          double dropout) {
  Attention attention = diffusers_attention(name, heads, width / heads);
  attention.out_dropout = dropout;
  return attention;
}

// Attention among places, to the text, and an MLP, each of the norm of the rows.
Value run_rows(Eager& e, const ImageTransformer& t, Value rows, Context& context) {
  const std::int64_t width = rows.last();
  const auto normed = [&](const char* name) {
    return run(e, Norm{NormKind::layer, name, /*bias=*/true}, rows);
  };
  Attention among = image_attention("attn1", t.heads, width, t.dropout);
  among.cross = t.text_only;
  Attention to_text = image_attention("attn2", t.heads, width, t.dropout);
  to_text.cross = true;
  const Mlp mlp = diffusers_mlp("ff", width, "gelu", MlpForm::fused_gate, t.dropout);
  rows = e.add(rows, run(e, among, normed("norm1"), context));
  rows = e.add(rows, run(e, to_text, normed("norm2"), context));
  return e.add(rows, run(e, mlp, normed("norm3")));
}

}  // namespace

Value run(Eager& e, std::string_view name, const ResidualBlock& block, const Value& x,
          const Value& time) {
  const Scope at(e, name);
  const auto activated = [&](const Value& value) {
    const Scope of(e, "nonlinearity");
    return activate(e, block.activation, value);
  };
  Value out = activated(group_norm(e, "norm1", block.groups, x));
  out = run(e, Convolution{.name = "conv1", .out = block.out}, out);
  if (block.timed) {
    const Value shift = run_linear(e, "time_emb_proj", activated(time), block.out, true);
    out = e.add(out, Eager::view(shift, {x.shape[0], block.out, 1, 1}));
  }
  out = e.dropout(activated(group_norm(e, "norm2", block.groups, out)), block.dropout);
  out = run(e, Convolution{.name = "conv2", .out = block.out}, out);
  if (x.shape[1] == block.out) return e.add(x, out);
  const Convolution shortcut{.name = "conv_shortcut", .out = block.out, .kernel = 1, .padding = 0};
  return e.add(run(e, shortcut, x), out);
}

Value run(Eager& e, std::string_view name, const ImageTransformer& t, const Value& x,
          Context& context) {
  const Scope at(e, name);
  const std::int64_t width = x.shape[1];
  const Value normed = group_norm(e, "norm", t.groups, x);
  const auto pointwise = [&](const char* module, const Value& image) {
    return run(e, Convolution{.name = module, .out = width, .kernel = 1, .padding = 0}, image);
  };
  Value rows = t.linear ? run_strided_linear(e, "proj_in", rows_of(normed), width, /*bias=*/true)
                        : rows_of(pointwise("proj_in", normed));
  for (std::int64_t i = 0; i < t.blocks; ++i) {
    const Scope of(e, fmt::format("transformer_blocks.{}", i));
    rows = run_rows(e, t, rows, context);
  }
  const Value back = t.linear ? e.copy(run_linear(e, "proj_out", rows, width, true), x.shape)
                              : pointwise("proj_out", e.copy(rows, x.shape));
  return e.add(back, x);
}

Value halve(Eager& e, const Value& x, bool one_side) {
  const Scope at(e, "downsamplers.0");
  Convolution convolution{.name = "conv", .out = x.shape[1], .stride = 2};
  if (!one_side) return run(e, convolution, x);
  convolution.padding = 0;
  return run(e, convolution, e.copy(x, {x.shape[0], x.shape[1], x.shape[2] + 1, x.shape[3] + 1}));
}

Value double_size(Eager& e, const Value& x) {
  const Scope at(e, "upsamplers.0");
  const Value larger = e.copy(x, {x.shape[0], x.shape[1], 2 * x.shape[2], 2 * x.shape[3]});
  return run(e, Convolution{.name = "conv", .out = x.shape[1]}, larger);
}

Value embed_condition(Eager& e, std::string_view name, const Value& x, std::int64_t width,
                      std::string_view activation_module, std::string_view activation) {
  const Scope at(e, name);
  Value out = run_linear(e, "linear_1", x, width, /*bias=*/true);
  {
    const Scope of(e, activation_module);
    out = activate(e, activation, out);
  }
  return run_linear(e, "linear_2", out, width, /*bias=*/true);
}

}  // namespace shardsim::models
