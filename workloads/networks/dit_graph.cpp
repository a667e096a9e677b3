#include "workloads/networks/diffusers_attention.hpp"
#include "workloads/networks/network_graph.hpp"

namespace shardsim::models {
namespace {

TensorId numbers(GraphContext& c, const char* name, std::int64_t width) {
  return c.g.input(name, c.g.compute_dtype(), {{c.batch}, {c.label(name, width)}});
}

constexpr std::int64_t time_numbers = 256;

// Of the time and the class, as the current block has it.
TensorId embed_class(NetworkGraph& n, const Dit& net) {
  GraphContext& c = n.c;
  const std::int64_t hidden = net.heads * net.head_dim;
  const std::string at = c.inside("norm1.emb");
  const TensorId time = n.condition(at + ".timestep_embedder",
                                    numbers(c, "time_numbers", time_numbers), hidden, "silu");
  const std::string table = at + ".class_embedder.embedding_table";
  const Dim width = c.g.dims_of(time).back();
  const TensorId classes = c.g.embedding(
      table, c.g.input("class_labels", c.options.index_dtype, {{c.batch}}),
      c.g.parameter(table + ".weight", {{c.label("classes", net.classes + 1)}, width}),
      {{c.batch}, width});
  return c.g.elementwise(Function::add, at + ".sum", {time, classes});
}

TensorId dit_block(NetworkGraph& n, const Dit& net, TensorId x) {
  GraphContext& c = n.c;
  constexpr std::int64_t parts = 6;  // shift, scale and gate of attention and of the MLP
  const std::vector<TensorId> by = n.modulation(c.inside("norm1"), embed_class(n, net), parts);
  {
    Attention attention = diffusers_attention("attn1", net.heads, net.head_dim);
    attention.q_bias = attention.k_bias = attention.v_bias = net.qkv_bias;
    const GraphBuilder::Within of(c.g, OpModule::attention);
    const TensorId out = add(c, attention, n.modulated(c.inside("norm1.norm"), x, by[0], by[1]));
    x = n.gated_onto(c.inside("attn1"), x, c.dropped(c.inside("attn1.dropout"), out, net.dropout),
                     by[2]);
  }
  const GraphBuilder::Within of(c.g, OpModule::mlp);
  const Mlp mlp =
      diffusers_mlp("ff", net.heads * net.head_dim, net.activation, MlpForm::plain, net.dropout);
  const TensorId out = add(c, mlp, n.modulated(c.inside("norm3"), x, by[3], by[4]));
  return n.gated_onto(c.inside("ff"), x, out, by[5]);
}

}  // namespace

TensorId add(NetworkGraph& n, const Dit& net, std::int64_t side) {
  GraphContext& c = n.c;
  n.first_block("embedding");
  const Convolution patches{
      .out = net.heads * net.head_dim, .kernel = net.patch, .stride = net.patch, .padding = 0};
  TensorId x =
      n.rows_of("pos_embed.rows", n.convolve("pos_embed.proj", patches, n.input(net.in, side)),
                LabelRole::sequence);
  const TensorId positions =
      c.g.constant("pos_embed", c.g.compute_dtype(), {{c.sequence}, {c.hidden}});
  x = c.g.marked(c.g.elementwise(Function::add, "pos_embed.added", {x, positions}),
                 StreamMark::stream);
  n.live = {&x};
  // The first block's embedding is made once more, for the result.
  n.next_layers("transformer_blocks", {0});
  x = dit_block(n, net, x);
  TensorId embedded = embed_class(n, net);
  n.live = {&x, &embedded};
  if (net.layers > 1) {
    std::vector<std::int32_t> others;
    for (std::int64_t i = 1; i < net.layers; ++i) others.push_back(static_cast<std::int32_t>(i));
    n.next_layers("transformer_blocks", std::move(others));
    x = dit_block(n, net, x);
  }
  n.next_block("head");
  const LabelId two = c.label("modulations", 2);
  const TensorId both =
      c.linear({"proj_out_1", {two, c.hidden}, c.g.dims_of(embedded).back(), /*bias=*/true},
               c.activate("silu", "proj_out_1.silu", embedded), {{c.batch}, {two}, {c.hidden}});
  const std::vector<TensorId> by = c.g.split({"shift", "scale"}, both, two);
  const LabelId pixels = c.label("patch_values", net.patch * net.patch * net.out);
  return n.mean_loss(c.linear({"proj_out_2", {pixels}, {c.hidden}, /*bias=*/true},
                              n.modulated("norm_out", x, by[0], by[1]),
                              {{c.batch}, {c.sequence}, {pixels}}));
}

}  // namespace shardsim::models
