#include <fmt/format.h>

#include <algorithm>

#include "workloads/layers/activation.hpp"
#include "workloads/layers/attention.hpp"
#include "workloads/layers/attention_kernel.hpp"
#include "workloads/layers/mlp.hpp"
#include "workloads/networks/convolution.hpp"
#include "workloads/networks/diffusers_attention.hpp"
#include "workloads/networks/diffusion_transformer.hpp"
#include "workloads/networks/modulation.hpp"
#include "workloads/networks/unet_blocks.hpp"

namespace shardsim::models {
namespace {

struct Qkv3 {
  Value q, k, v;
};

Mlp feed_forward(const std::string& name, std::int64_t hidden) {
  return diffusers_mlp(name, hidden, "gelu_pytorch_tanh", MlpForm::plain, /*dropout=*/0);
}

// Image and text, [b, rows, h] both; the text is gone after the last block.
struct Rows {
  Value image, text;
};

struct JointBlock {
  Eager& e;
  const JointTransformer& net;
  Context& context;
  bool last = false;
  bool dual = false;

  [[nodiscard]] Norm head_norm(const char* name) const {
    return {net.packed ? NormKind::rms_fused : NormKind::rms_t5, name};
  }

  [[nodiscard]] Value heads_of(const char* module, const char* norm, const Value& x) const {
    const Value all = run_linear(e, module, x, net.heads * net.head_dim, /*bias=*/true);
    Value heads = Eager::view(all, {x.shape[0], x.shape[1], net.heads, net.head_dim});
    if (!net.qk_norm || norm[0] == '\0') return heads;
    return run(e, head_norm(norm), heads);
  }

  // A module that reads a part of the joint rows, which lie apart for several examples.
  [[nodiscard]] Value project_part(const char* name, const Value& joint, std::int64_t rows) const {
    const Shape shape{joint.shape[0], rows, joint.last()};
    if (net.packed) {
      const Value part = Eager::view(joint, shape);
      return run_linear(e, name, shape[0] > 1 ? e.copy(part) : part, shape[2], /*bias=*/true);
    }
    if (shape[0] > 1) return run_strided_linear(e, name, Eager::view(joint, shape), shape[2], true);
    return run_linear(e, name, Eager::view(joint, shape), shape[2], /*bias=*/true);
  }

  [[nodiscard]] Value attend_to(Value q, Value k, const Value& v) const {
    if (net.packed) turn(e, {.dims = net.head_dim, .fp32 = true}, context, q, k);
    return run_attention_kernel(e, q, k, v, ScoreRules{.by_heads = !net.packed});
  }

  [[nodiscard]] Rows attend(const Rows& x) const {
    const Scope at(e, "attn");
    const std::int64_t rows = x.image.shape[1] + x.text.shape[1];
    const Shape shape{x.image.shape[0], net.heads, rows, net.head_dim};
    const Qkv3 image{heads_of("to_q", "norm_q", x.image), heads_of("to_k", "norm_k", x.image),
                     heads_of("to_v", "", x.image)};
    const Qkv3 text{heads_of("add_q_proj", "norm_added_q", x.text),
                    heads_of("add_k_proj", "norm_added_k", x.text),
                    heads_of("add_v_proj", "", x.text)};
    const Value joint =
        attend_to(e.copy(image.q, shape), e.copy(image.k, shape), e.copy(image.v, shape));
    Rows out;
    if (!last) out.text = project_part("to_add_out", joint, x.text.shape[1]);
    out.image = project_part("to_out.0", joint, x.image.shape[1]);
    return out;
  }

  [[nodiscard]] Value attend_again(const Value& x) const {
    Attention attention = diffusers_attention("attn2", net.heads, net.head_dim);
    attention.q_bias = attention.k_bias = attention.v_bias = true;
    if (net.qk_norm) {
      attention.q_norm = {NormKind::rms_t5, "norm_q"};
      attention.k_norm = {NormKind::rms_t5, "norm_k"};
    }
    return run(e, attention, x, context);
  }

  [[nodiscard]] Value mix(const char* norm, const char* mlp, const Value& x,
                          const Value& all) const {
    const Value normed = modulate(e, fixed_norm(e, norm, x), all);
    return e.add(x, gated_branch(e, run(e, feed_forward(mlp, x.last()), normed), all));
  }

  [[nodiscard]] Rows run_block(Rows x, const Value& condition) const {
    constexpr std::int64_t parts = 6;  // shift, scale and gate of attention and of the MLP
    const std::int64_t hidden = x.image.last();
    Rows normed;
    Value image_all;
    Value text_all;
    Value again;
    {
      const Scope at(e, "norm1");
      image_all = modulation(e, condition, dual ? parts + 3 : parts, hidden);
      const Value plain = fixed_norm(e, "norm", x.image);
      normed.image = modulate(e, plain, image_all);
      if (dual) again = modulate(e, plain, image_all);
    }
    {
      const Scope at(e, "norm1_context");
      text_all = modulation(e, condition, last ? 2 : parts, hidden);
      normed.text = modulate(e, fixed_norm(e, "norm", x.text), text_all);
    }
    const Rows out = attend(normed);
    x.image = e.add(x.image, gated_branch(e, out.image, image_all));
    if (dual) x.image = e.add(x.image, gated_branch(e, attend_again(again), image_all));
    x.image = mix("norm2", "ff", x.image, image_all);
    if (last) return {x.image, {}};
    x.text = e.add(x.text, gated_branch(e, out.text, text_all));
    x.text = mix("norm2_context", "ff_context", x.text, text_all);
    return x;
  }
};

// Both rows together: what attention and the MLP make of them side by side, through one product.
Value single_block(const JointBlock& block, const Value& x, const Value& condition) {
  Eager& e = block.e;
  const JointTransformer& net = block.net;
  const std::int64_t hidden = net.hidden();
  constexpr std::int64_t parts = 3;
  Value all;
  Value normed;
  {
    const Scope at(e, "norm");
    all = modulation(e, condition, parts, hidden);
    normed = modulate(e, fixed_norm(e, "norm", x), all);
  }
  Value inner = run_linear(e, "proj_mlp", normed, 4 * hidden, /*bias=*/true);
  inner = activate(e, "gelu_pytorch_tanh", inner);
  Value out;
  {
    const Scope at(e, "attn");
    const Shape shape{x.shape[0], net.heads, x.shape[1], net.head_dim};
    const Value q = Eager::view(block.heads_of("to_q", "norm_q", normed), shape);
    const Value k = Eager::view(block.heads_of("to_k", "norm_k", normed), shape);
    const Value v = Eager::view(block.heads_of("to_v", "", normed), shape);
    out = block.attend_to(q, k, v);
  }
  const Value both = e.copy(out, {x.shape[0], x.shape[1], hidden + inner.last()});
  const Value made = run_linear(e, "proj_out", both, hidden, /*bias=*/true);
  return e.add(x, gated_branch(e, made, all));
}

// FLUX's: rows of patches as they come.
Value embed_packed(Eager& e, const JointTransformer& net, const ImageStep& step) {
  const std::int64_t side = step.side / net.patch;
  const Value latents = e.input(e.dtype(), {step.batch, side * side, net.in});
  return run_linear(e, "x_embedder", latents, net.hidden(), /*bias=*/true);
}

Value embed_patches(Eager& e, const JointTransformer& net, const ImageStep& step) {
  const std::int64_t hidden = net.heads * net.head_dim;
  const Scope at(e, "pos_embed");
  e.buffer("pos_embed", {1, net.positions * net.positions, hidden}, DType::f32);
  const Convolution patches{
      .name = "proj", .out = hidden, .kernel = net.patch, .stride = net.patch, .padding = 0};
  const Value latents = e.input(e.dtype(), {step.batch, net.in, step.side, step.side});
  return e.copy(rows_of(run(e, patches, latents)));
}

Value embed_time_and_text(Eager& e, const JointTransformer& net, std::int64_t batch) {
  constexpr std::int64_t time_numbers = 256;
  const std::int64_t hidden = net.heads * net.head_dim;
  const Scope at(e, "time_text_embed");
  const Value time = embed_condition(
      e, "timestep_embedder", e.constant(e.dtype(), {batch, time_numbers}), hidden, "act", "silu");
  Value sum = time;
  if (net.guidance) {
    const Value guidance = e.constant(e.dtype(), {batch, time_numbers});
    sum = e.add(sum, embed_condition(e, "guidance_embedder", guidance, hidden, "act", "silu"));
  }
  const Value pooled = e.input(e.dtype(), {batch, net.pooled_width});
  return e.add(sum, embed_condition(e, "text_embedder", pooled, hidden, "act_1", "silu"));
}

}  // namespace

std::int64_t coarsest(const JointTransformer& net) { return net.patch; }

Value run(Eager& e, const JointTransformer& net, const ImageStep& step) {
  const std::int64_t hidden = net.heads * net.head_dim;
  Rows x;
  x.image = net.packed ? embed_packed(e, net, step) : embed_patches(e, net, step);
  const Value condition = embed_time_and_text(e, net, step.batch);
  const Value text = e.input(e.dtype(), {step.batch, step.text, net.text_width});
  x.text = run_linear(e, "context_embedder", text, net.context_width, /*bias=*/true);
  Context context;
  context.batch = step.batch;
  context.sequence = x.image.shape[1] + x.text.shape[1];
  for (std::int64_t i = 0; i < net.layers; ++i) {
    e.open_layer(fmt::format("transformer_blocks.{}", i), "block");
    const bool dual = std::find(net.dual.begin(), net.dual.end(), i) != net.dual.end();
    const bool last = net.single == 0 && i + 1 == net.layers;
    const JointBlock block{.e = e, .net = net, .context = context, .last = last, .dual = dual};
    x = block.run_block(x, condition);
    e.close_layer();
  }
  Value joint;
  for (std::int64_t i = 0; i < net.single; ++i) {
    e.open_layer(fmt::format("single_transformer_blocks.{}", i), "single");
    const Shape shape{step.batch, context.sequence, hidden};
    joint = single_block({.e = e, .net = net, .context = context},
                         e.copy(joint.exists() ? joint : x.image, shape), condition);
    e.close_layer();
  }
  if (joint.exists()) x.image = Eager::view(joint, x.image.shape);
  {
    const Scope at(e, "norm_out");
    const Value all = modulation(e, condition, 2, hidden);
    x.image = modulate(e, fixed_norm(e, "norm", x.image), all);
  }
  const std::int64_t values = net.packed ? net.out : net.patch * net.patch * net.out;
  return run_linear(e, "proj_out", x.image, values, /*bias=*/true);
}

}  // namespace shardsim::models
