// Mamba-2 with blocks of attention that layers share: Zamba2.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "workloads/models/families/decoder.hpp"
#include "workloads/models/families/families.hpp"

namespace shardsim::models {
namespace {

bool is_hybrid(const std::string& type) { return type == "hybrid"; }

// The class's order where a file lists none: every sixth layer, later ones closer.
std::string default_type(std::int64_t layer) {
  constexpr std::array hybrid = {6, 12, 18, 24, 30, 36, 42, 47, 51};
  const bool shares = std::find(hybrid.begin(), hybrid.end(), layer) != hybrid.end();
  return shares ? "hybrid" : "linear_attention";
}

Mamba2 zamba2_mixer(const Config& c, const Sizes& n) {
  Mamba2 mixer;
  mixer.name = "mamba";
  mixer.heads = c.size("n_mamba_heads", 8);
  const std::int64_t inner = n.hidden * c.size("mamba_expand", 2);
  mixer.head_dim = c.divided("mamba_expand", inner, "n_mamba_heads", mixer.heads);
  mixer.state = c.size("mamba_d_state", 64);
  mixer.groups = c.size("mamba_ngroups", 1);
  mixer.kernel = c.size("mamba_d_conv", 4);
  mixer.chunk = c.size("chunk_size", 256);
  mixer.bias = mixer.out_bias = c.flag("add_bias_linear", false);
  static_cast<void>(c.divided("n_mamba_heads", mixer.heads, "mamba_ngroups", mixer.groups));
  return mixer;
}

// Attention over the stream and the embeddings side by side, then a gated MLP; adapters of every
// layer that uses the block.
SharedBlock zamba2_block(const Config& c, const Sizes& n) {
  SharedBlock block;
  block.before = {n.norm, "input_layernorm"};
  block.between = {n.norm, "pre_ff_layernorm"};
  Sizes wide = n;
  wide.head_dim = c.divided("hidden_size", 2 * n.hidden, "num_attention_heads", n.heads);
  block.attention = llama_attention(c, wide);
  set_biases(block.attention, false, false);
  block.attention.out_width = n.hidden;
  if (!c.flag("use_mem_rope", false)) block.attention.rotary.dims = 0;
  block.mlp = llama_mlp(n);
  block.mlp.name = "feed_forward";
  block.mlp.form = MlpForm::fused_gate;
  block.mlp.up = "gate_up_proj";
  block.mlp.bias = c.flag("add_bias_linear", false);
  block.mlp.adapters.rank = c.size("adapter_rank", 128);
  if (c.flag("use_shared_attention_adapter", false)) {
    block.attention.adapters.rank = block.mlp.adapters.rank;
  }
  return block;
}

// num_mem_blocks blocks take turns over the hybrid layers: of two, the first, third, ... use one.
ModelSpec zamba2(const Config& c) {
  Sizes n = read_sizes(c, {.tied = true, .activation = "gelu", .has_width = false});
  n.width = c.size("intermediate_size", 4 * n.hidden);
  const auto types = layer_types(c, n.layers, default_type, "layers_block_type|layer_types");
  std::vector<std::int64_t> hybrids;
  for (std::int64_t i = 0; i < n.layers; ++i) {
    if (is_hybrid(types[static_cast<std::size_t>(i)])) hybrids.push_back(i);
  }
  // What these say the sizes above do, or the class does not read it.
  c.pass_over({"attention_hidden_size", "attention_head_dim", "kv_channels", "num_query_groups",
               "mamba_headdim", "hybrid_layer_ids", "use_conv_bias", "use_long_context",
               "use_mem_eff_path", "ffn_hidden_size", "gated_linear_unit", "ft_lora"});
  const std::int64_t blocks = c.size("num_mem_blocks", 1);
  const SharedBlock block = zamba2_block(c, n);
  const Mamba2 mixer = zamba2_mixer(c, n);
  std::int64_t use = 0;
  ModelSpec spec =
      decoder(n, Layers::of(n.layers, [&](std::int64_t i) {
                Branch branch{.before = {n.norm, "input_layernorm"}, .body = mixer};
                if (!is_hybrid(types[static_cast<std::size_t>(i)])) {
                  return LayerKind{.name = "mamba", .branches = {branch}};
                }
                SharedBlock mine = block;
                const std::int64_t which = use % blocks;
                Adapters pairs{.rank = block.mlp.adapters.rank, .used = use++};
                for (std::size_t k = static_cast<std::size_t>(which); k < hybrids.size();
                     k += static_cast<std::size_t>(blocks)) {
                  pairs.pairs.push_back(static_cast<std::int64_t>(k));
                }
                mine.mlp.adapters = pairs;
                if (mine.attention.adapters.rank > 0) mine.attention.adapters = pairs;
                const std::int64_t first = hybrids[static_cast<std::size_t>(which)];
                if (first != i) mine.first = fmt::format("model.layers.{}.{}", first, mine.name);
                branch.before.name = "mamba_decoder.input_layernorm";
                std::get<Mamba2>(branch.body).name = "mamba_decoder.mamba";
                return LayerKind{.name = "hybrid", .branches = {branch}, .shared = mine};
              }));
  spec.stacks[0].norm.name = "model.final_layernorm";
  return spec;
}

// One block of attention and an MLP that all hybrid layers share, without adapters; Mamba's heads
// are scanned one by one. Defaults: transformers 5.23, configuration_zamba.py.
ModelSpec zamba(const Config& c) {
  Sizes n = read_sizes(c, {.kv_heads = 16, .tied = true, .activation = "gelu", .width = 14848});
  const std::int64_t period = c.size("attn_layer_period", 6);
  const std::int64_t offset = c.count("attn_layer_offset", 4);
  const auto types = layer_types(
      c, n.layers,
      [&](std::int64_t i) -> std::string {
        const bool shares = i == 2 || (i > 2 && (i - 3) % period == offset);
        return shares ? "hybrid" : "linear_attention";
      },
      "layers_block_type|layer_types");
  c.pass_over(
      {"use_mamba_kernels", "use_associative_scan", "attention_hidden_size", "hidden_mamba_act"});
  SharedBlock block;
  block.name = "shared_transf";
  block.before = {n.norm, "input_layernorm"};
  block.between = {n.norm, "pre_ff_layernorm"};
  Sizes wide = n;
  wide.head_dim =
      c.optional_size("attention_head_dim", {})
          .value_or(c.divided("hidden_size", 2 * n.hidden, "num_attention_heads", n.heads));
  block.attention = llama_attention(c, wide);
  set_biases(block.attention, false, false);
  block.attention.out_width = n.hidden;
  block.attention.rotary.dims = 0;
  block.mlp = llama_mlp(n);
  block.mlp.name = "feed_forward";
  Mamba mixer;
  mixer.name = "mamba";
  mixer.inner = n.hidden * c.size("mamba_expand", 2);
  mixer.heads = c.size("n_mamba_heads", 2);
  static_cast<void>(c.divided("mamba_expand", mixer.inner, "n_mamba_heads", mixer.heads));
  mixer.state = c.size("mamba_d_state", 16);
  mixer.kernel = c.size("mamba_d_conv", 4);
  const bool automatic = !c.given("mamba_dt_rank") || c.json().find("mamba_dt_rank")->is_string();
  mixer.step_rank = automatic ? (n.hidden + 15) / 16 : c.size("mamba_dt_rank");
  mixer.conv_bias = c.flag("mamba_conv_bias", true);
  mixer.bias = c.flag("mamba_proj_bias", false);
  std::int64_t first = -1;
  ModelSpec spec =
      decoder(n, Layers::of(n.layers, [&](std::int64_t i) {
                Branch branch{.before = {n.norm, "input_layernorm"}, .body = mixer};
                if (!is_hybrid(types[static_cast<std::size_t>(i)])) {
                  return LayerKind{.name = "mamba", .branches = {branch}};
                }
                SharedBlock mine = block;
                // Untied, every hybrid layer has a block of its own.
                if (first >= 0 && n.tied)
                  mine.first = fmt::format("model.layers.{}.{}", first, mine.name);
                if (first < 0) first = i;
                branch.before.name = "mamba_decoder.input_layernorm";
                std::get<Mamba>(branch.body).name = "mamba_decoder.mamba";
                return LayerKind{.name = "hybrid", .branches = {branch}, .shared = mine};
              }));
  spec.stacks[0].norm.name = "model.final_layernorm";
  return spec;
}

}  // namespace

std::vector<Family> shared_block_families() {
  return {{"Zamba2ForCausalLM", "zamba2", zamba2}, {"ZambaForCausalLM", "zamba", zamba}};
}

}  // namespace shardsim::models
