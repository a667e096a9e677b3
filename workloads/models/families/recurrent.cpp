// Linear recurrences: RecurrentGemma, RWKV, xLSTM.
#include "workloads/models/families/decoder.hpp"
#include "workloads/models/families/families.hpp"

namespace shardsim::models {
namespace {

// Two recurrent blocks, then windowed attention; biases but for queries, keys and values.
ModelSpec recurrent_gemma(const Config& c) {
  Sizes n = read_sizes(
      c, {.tied = true, .activation = "gelu_pytorch_tanh", .activation_keys = "hidden_activation"});
  n.norm = NormKind::rms_offset;
  Attention attention = llama_attention(c, n);
  attention.name = "temporal_block";
  attention.o_bias = true;
  attention.window = c.count("attention_window_size|sliding_window", 2048);
  attention.rotary.dims = rotary_dims(c, n.head_dim, 0.5);
  attention.rotary.concatenated = attention.rotary.each_layer = true;
  RecurrentBlock recurrent;
  recurrent.width = c.size("lru_width", n.hidden);
  recurrent.heads = n.heads;
  recurrent.kernel = c.size("conv1d_width", 4);
  recurrent.activation = n.activation;
  static_cast<void>(c.divided("lru_width", recurrent.width, "num_attention_heads", n.heads));
  Mlp mlp = llama_mlp(n);
  mlp.name = "mlp_block";
  mlp.width = n.width / 2;  // intermediate_size counts gate and up
  mlp.bias = true;
  // How weights start.
  c.pass_over({"w_init_variance_scale", "final_w_init_variance_scale",
               "embeddings_scale_by_sqrt_dim", "layers_block_type", "layer_types"});
  std::vector<std::string> pattern = c.texts("block_types|_block_types");
  if (pattern.empty()) pattern = {"recurrent", "recurrent", "attention"};
  ModelSpec spec = decoder(n, Layers::of(n.layers, [&](std::int64_t i) {
                             const std::string& type =
                                 pattern[static_cast<std::size_t>(i) % pattern.size()];
                             LayerKind layer = llama_layer(n, type, attention, mlp);
                             if (type == "recurrent") layer.branches[0].body = recurrent;
                             layer.branches[0].before.name = "temporal_pre_norm";
                             layer.branches[1].before.name = "channel_pre_norm";
                             return layer;
                           }));
  spec.stacks[0].norm.name = "model.final_norm";
  std::get<TokenEmbedding>(spec.stacks[0].input).scaled = true;
  spec.head.soft_cap = c.cap("logits_soft_cap", 30);
  return spec;
}

// RWKV-4: the first layer norms what enters. Defaults: transformers 5.23, configuration_rwkv.py.
ModelSpec rwkv(const Config& c) {
  Sizes n;
  n.hidden = c.needed("hidden_size", 4096);
  n.layers = c.layers("num_hidden_layers", 32);
  n.vocab = c.needed("vocab_size", 50277);
  n.tied = c.flag("tie_word_embeddings", false);
  const RwkvTimeMix time{c.optional_size("attention_hidden_size", {}).value_or(n.hidden)};
  const RwkvChannelMix channels{c.optional_size("intermediate_size", {}).value_or(4 * n.hidden)};
  c.pass_over({"context_length", "rescale_every"});  // of steps of inference in fp16
  const LayerKind layer{.name = "time and channels",
                        .branches = {{.before = layer_norm("ln1"), .body = Mixer{time}},
                                     {.before = layer_norm("ln2"), .body = Mixer{channels}}}};
  LayerKind first = layer;
  first.name = "normed first";
  first.branches.insert(first.branches.begin(),
                        Branch{.body = Mixer{StreamNorm{layer_norm("pre_ln")}}, .replaces = true});
  ModelSpec spec =
      decoder(n, Layers::of(n.layers, [&](std::int64_t i) { return i == 0 ? first : layer; }));
  Stack& stack = spec.stacks[0];
  stack.prefix = "rwkv.blocks";
  stack.norm = layer_norm("rwkv.ln_out");
  std::get<TokenEmbedding>(stack.input).name = "rwkv.embeddings";
  spec.head.name = "head";
  set_tied(spec, n.tied);
  return spec;
}

std::int64_t up_to_multiple(double value, std::int64_t multiple) {
  return (static_cast<std::int64_t>(value) + multiple - 1) / multiple * multiple;
}

// Defaults: transformers 5.23, configuration_xlstm.py.
ModelSpec xlstm(const Config& c) {
  Sizes n;
  n.hidden = c.needed("hidden_size|embedding_dim", 4096);
  n.layers = c.layers("num_hidden_layers|num_blocks", 32);
  n.vocab = c.needed("vocab_size", 50304);
  const std::int64_t heads = c.size("num_heads", 8);
  const auto share = [&](const char* key, double otherwise) {
    const auto width =
        static_cast<std::int64_t>(static_cast<double>(n.hidden) * c.number(key, otherwise));
    return c.divided(key, width, "num_heads", heads);
  };
  MatrixMemory memory;
  memory.heads = heads;
  memory.key_dim = share("qk_dim_factor", 0.5);
  memory.value_dim = share("v_dim_factor", 1);
  memory.chunk = c.size("chunk_size", 64);
  memory.bias = c.flag("use_bias", false);
  if (memory.bias) c.fail("use_bias", "only false is supported");
  if (c.text("weight_mode", "single") != "single") {
    c.fail("weight_mode", "only \"single\" is supported");
  }
  if (!c.flag("norm_reduction_force_float32", true)) {
    c.fail("norm_reduction_force_float32", "only true is supported");
  }
  c.pass_over({"chunkwise_kernel", "sequence_kernel", "step_kernel", "mode", "return_last_states",
               "autocast_kernel_dtype", "eps", "inference_state_dtype", "gate_soft_cap",
               "add_out_norm", "max_inference_chunksize", "norm_eps"});
  Mlp mlp;
  mlp.name = "ffn";
  constexpr double usual_width = 2.667;
  mlp.width =
      up_to_multiple(static_cast<double>(n.hidden) * c.number("ffn_proj_factor", usual_width),
                     c.size("ffn_round_up_to_multiple_of", 64));
  mlp.gate = "proj_up_gate";
  mlp.up = "proj_up";
  mlp.down = "proj_down";
  ModelSpec spec =
      decoder(n, {.name = "matrix memory",
                  .branches = {{.before = {NormKind::rms, "norm_mlstm"}, .body = Mixer{memory}},
                               {.before = {NormKind::rms, "norm_ffn"}, .body = mlp}}});
  Stack& stack = spec.stacks[0];
  stack.prefix = "backbone.blocks";
  stack.norm = {NormKind::rms, "backbone.out_norm"};
  std::get<TokenEmbedding>(stack.input).name = "backbone.embeddings";
  spec.head.soft_cap = c.number("output_logit_soft_cap", 30);
  spec.head.fp32_cap = true;
  c.pass_over({"tie_word_embeddings"});  // the class never does
  set_tied(spec, false);
  return spec;
}

}  // namespace

std::vector<Family> recurrent_families() {
  return {{"RecurrentGemmaForCausalLM", "recurrent_gemma", recurrent_gemma},
          {"RwkvForCausalLM", "rwkv", rwkv},
          {"xLSTMForCausalLM", "xlstm", xlstm}};
}

}  // namespace shardsim::models
