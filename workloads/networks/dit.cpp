#include <fmt/format.h>

#include "workloads/layers/activation.hpp"
#include "workloads/layers/attention.hpp"
#include "workloads/layers/mlp.hpp"
#include "workloads/networks/convolution.hpp"
#include "workloads/networks/diffusers_attention.hpp"
#include "workloads/networks/diffusion_transformer.hpp"
#include "workloads/networks/modulation.hpp"
#include "workloads/networks/unet_blocks.hpp"

namespace shardsim::models {
namespace {

// Of the time and the class, as the block `layer` has it.
Value embed_class(Eager& e, const Dit& net, std::int64_t batch) {
  constexpr std::int64_t time_numbers = 256;
  const Scope at(e, "norm1.emb");
  const std::int64_t hidden = net.heads * net.head_dim;
  const Value time = embed_condition(
      e, "timestep_embedder", e.constant(e.dtype(), {batch, time_numbers}), hidden, "act", "silu");
  // Classes are dropped at random in training: their numbers are made anew.
  const Scope of(e, "class_embedder.embedding_table");
  const Value table = e.embedding_table("weight", {net.classes + 1, hidden});
  return e.add(time, e.embedding(e.constant(DType::i64, {batch}), table));
}

Value run_block(Eager& e, const Dit& net, Value x, Context& context) {
  const std::int64_t hidden = x.last();
  const Value condition = embed_class(e, net, x.shape[0]);
  Value all;
  Value normed;
  {
    const Scope at(e, "norm1");
    constexpr std::int64_t parts = 6;
    all = modulation(e, condition, parts, hidden);
    normed = modulate(e, fixed_norm(e, "norm", x), all);
  }
  Attention attention = diffusers_attention("attn1", net.heads, net.head_dim);
  attention.q_bias = attention.k_bias = attention.v_bias = net.qkv_bias;
  attention.out_dropout = net.dropout;
  x = e.add(x, gated_branch(e, run(e, attention, normed, context), all));
  const Mlp mlp = diffusers_mlp("ff", hidden, net.activation, MlpForm::plain, net.dropout);
  const Value out = run(e, mlp, modulate(e, fixed_norm(e, "norm3", x), all));
  return e.add(x, gated_branch(e, out, all));
}

std::string block_name(std::int64_t layer) { return fmt::format("transformer_blocks.{}", layer); }

}  // namespace

std::int64_t coarsest(const Dit& net) { return net.patch; }

Value run(Eager& e, const Dit& net, const ImageStep& step) {
  const std::int64_t hidden = net.heads * net.head_dim;
  const Convolution patches{.name = "pos_embed.proj",
                            .out = hidden,
                            .kernel = net.patch,
                            .stride = net.patch,
                            .padding = 0};
  const Value latents = e.input(e.dtype(), {step.batch, net.in, step.side, step.side});
  Value x = rows_of(run(e, patches, latents));
  x = e.add(x, e.constant(e.dtype(), {1, x.shape[1], hidden}));
  Context context;
  context.batch = step.batch;
  for (std::int64_t i = 0; i < net.layers; ++i) {
    e.open_layer(block_name(i), "block");
    x = run_block(e, net, x, context);
    e.close_layer();
  }
  e.reopen_layer(block_name(0));
  const Value embedded = embed_class(e, net, step.batch);
  e.close_layer();
  const Value condition = activate(e, "silu", embedded);
  const Value all = run_linear(e, "proj_out_1", condition, 2 * hidden, /*bias=*/true);
  x = modulate(e, fixed_norm(e, "norm_out", x), all);
  return run_linear(e, "proj_out_2", x, net.patch * net.patch * net.out, /*bias=*/true);
}

}  // namespace shardsim::models
