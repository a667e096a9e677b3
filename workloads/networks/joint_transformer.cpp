#include <fmt/format.h>

#include <algorithm>

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
  bool last = false;
  bool dual = false;

  [[nodiscard]] Value heads_of(const char* module, const char* norm, const Value& x) const {
    const Value all = run_linear(e, module, x, net.heads * net.head_dim, /*bias=*/true);
    Value heads = Eager::view(all, {x.shape[0], x.shape[1], net.heads, net.head_dim});
    if (!net.qk_norm || norm[0] == '\0') return heads;
    return run(e, Norm{NormKind::rms_t5, norm}, heads);
  }

  // A module that reads a part of the joint rows, which lie apart for several examples.
  [[nodiscard]] Value project_part(const char* name, const Value& joint, std::int64_t rows) const {
    const Shape shape{joint.shape[0], rows, joint.last()};
    if (shape[0] > 1) return run_strided_linear(e, name, Eager::view(joint, shape), shape[2], true);
    return run_linear(e, name, Eager::view(joint, shape), shape[2], /*bias=*/true);
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
    const Value joint = run_attention_kernel(e, e.copy(image.q, shape), e.copy(image.k, shape),
                                             e.copy(image.v, shape), ScoreRules{.by_heads = true});
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
    Context context;
    context.batch = x.shape[0];
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
  const Value pooled = e.input(e.dtype(), {batch, net.pooled_width});
  return e.add(time, embed_condition(e, "text_embedder", pooled, hidden, "act_1", "silu"));
}

}  // namespace

std::int64_t coarsest(const JointTransformer& net) { return net.patch; }

Value run(Eager& e, const JointTransformer& net, const ImageStep& step) {
  const std::int64_t hidden = net.heads * net.head_dim;
  Rows x;
  x.image = embed_patches(e, net, step);
  const Value condition = embed_time_and_text(e, net, step.batch);
  const Value text = e.input(e.dtype(), {step.batch, step.text, net.text_width});
  x.text = run_linear(e, "context_embedder", text, net.context_width, /*bias=*/true);
  for (std::int64_t i = 0; i < net.layers; ++i) {
    e.open_layer(fmt::format("transformer_blocks.{}", i), "block");
    const bool dual = std::find(net.dual.begin(), net.dual.end(), i) != net.dual.end();
    const JointBlock block{.e = e, .net = net, .last = i + 1 == net.layers, .dual = dual};
    x = block.run_block(x, condition);
    e.close_layer();
  }
  {
    const Scope at(e, "norm_out");
    const Value all = modulation(e, condition, 2, hidden);
    x.image = modulate(e, fixed_norm(e, "norm", x.image), all);
  }
  return run_linear(e, "proj_out", x.image, net.patch * net.patch * net.out, /*bias=*/true);
}

}  // namespace shardsim::models
