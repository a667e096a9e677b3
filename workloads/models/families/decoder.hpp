// What the descriptions of decoders share: the sizes under their usual keys, Llama's components
// made of them, and the model around the layers. A family starts with these and changes what
// differs.
//
//   ModelSpec qwen2(const Config& c) {
//     const Sizes n = read_sizes(c, {.kv_heads = 32});
//     Attention attention = llama_attention(c, n);
//     attention.q_bias = attention.k_bias = attention.v_bias = true;
//     return decoder(n, {llama_layer("full", attention, llama_mlp(c, n))});
//   }
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "workloads/models/families/config.hpp"
#include "workloads/models/spec.hpp"

namespace shardsim::models {

// Where a class's defaults are not Llama's.
struct SizeDefaults {
  std::optional<std::int64_t> kv_heads{};  // none: as many as heads
  std::optional<std::int64_t> head_dim{};  // none: hidden / heads
  bool tied = false;
  std::string_view activation = "silu";
  std::string_view activation_keys = "hidden_act";
  std::string_view width_keys = "intermediate_size";
  bool has_width = true;
  // Where a nested configuration leaves them out.
  std::int64_t hidden = 4096, width = 11008, vocab = 32000;
  std::optional<std::int64_t> layers{};  // where a list of layers says how many
};

struct Sizes {
  std::int64_t hidden = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t width = 0;
  std::int64_t vocab = 0;
  bool tied = false;
  std::string activation;
  NormKind norm = NormKind::rms;
};

[[nodiscard]] Sizes read_sizes(const Config& c, const SizeDefaults& defaults);

// {norm, attention}, {norm, MLP}, under Llama's names.
[[nodiscard]] Attention llama_attention(const Config& c, const Sizes& n);
[[nodiscard]] Mlp llama_mlp(const Sizes& n);
[[nodiscard]] LayerKind llama_layer(const Sizes& n, std::string name, Attention attention,
                                    Body feed_forward);
// Layer norm with a bias; an MLP without a gate, with biases; both as before Llama.
[[nodiscard]] Norm layer_norm(std::string name);
[[nodiscard]] Mlp plain_mlp(const Sizes& n, std::string up, std::string down);
// Dimensions of a head that are turned: a part of all.
[[nodiscard]] std::int64_t rotary_dims(const Config& c, std::int64_t head_dim, double otherwise);
// All biases of q, k, v and o.
void set_biases(Attention& attention, bool qkv, bool o);

// Experts of this number, of which a token visits so many: no more than there are.
[[nodiscard]] Experts read_experts(const Config& c, const Sizes& n, std::string_view number_keys,
                                   std::int64_t number, std::string_view per_token_keys,
                                   std::int64_t per_token, std::int64_t width);
// Qwen's: a softmax router, one shared expert with a gate of its own where `shared` is above 0.
[[nodiscard]] Experts qwen_experts(const Config& c, const Sizes& n, std::int64_t number,
                                   std::int64_t per_token, std::int64_t width, std::int64_t shared,
                                   bool renormalize);
// DeepSeek's: a router in fp32, shared experts as one MLP.
[[nodiscard]] Experts deepseek_experts(const Config& c, const Sizes& n, std::int64_t number,
                                       std::int64_t per_token, std::int64_t width,
                                       std::int64_t shared);
// Groups of experts of which a token visits some: n_group and topk_group, with a class's defaults.
void read_groups(const Config& c, Router& router, std::int64_t groups, std::int64_t chosen);
// Of these a router with sigmoid scores, a bias that moves the choice and groups, one by default.
[[nodiscard]] Experts sigmoid_experts(const Config& c, const Sizes& n, std::int64_t number,
                                      std::int64_t per_token, std::int64_t width,
                                      std::int64_t shared, bool renormalize);
// DeepSeek's attention; a layer of it.
[[nodiscard]] LatentAttention read_latent(const Config& c, const Sizes& n);
[[nodiscard]] LayerKind latent_layer(const Sizes& n, const std::string& name,
                                     const LatentAttention& attention, const Body& feed_forward);
// Granite's: the softmax of the largest logits.
[[nodiscard]] Experts granite_experts(const Config& c, const Sizes& n);
// With the shared MLP outside their module that a file may ask for.
[[nodiscard]] Experts granite_experts_beside_shared(const Config& c, const Sizes& n);
[[nodiscard]] bool qwen_has_experts(const Config& c, std::int64_t layer);

// The kinds of layers in order: one for each layer, equal ones counted once.
struct Layers {
  std::vector<LayerKind> kinds;
  std::vector<int> order;

  void add(LayerKind kind);
  // make(i) for layers 0 to n - 1; a number in a kind's name would make each layer its own.
  [[nodiscard]] static Layers of(std::int64_t n,
                                 const std::function<LayerKind(std::int64_t)>& make);
};

// Layers whose attention has sinks, windowed ones among them (Granite's of 2026).
[[nodiscard]] Layers sink_layers(const Config& c, const Sizes& n, const Body& feed_forward);

// Around the layers: embedding, final norm, head, under Llama's names.
[[nodiscard]] ModelSpec decoder(const Sizes& n, Layers layers);
[[nodiscard]] ModelSpec decoder(const Sizes& n, const LayerKind& kind);
// Granite's numbers: of embeddings, of what each branch adds, of logits.
void set_multipliers(const Config& c, ModelSpec& spec);
// The head's weight is the embedding's, and under which full name.
void set_tied(ModelSpec& spec, bool tied);

// fairseq's decoders as XGLM and Kosmos-2 have them: norms before the branches, biases everywhere,
// tokens scaled, positions of sines, which have no table.
[[nodiscard]] Attention fairseq_attention(const Config& c, const Sizes& n);
[[nodiscard]] Mlp fairseq_mlp(const Config& c, const Sizes& n, std::string name);
[[nodiscard]] ModelSpec fairseq_decoder(const Config& c, const Sizes& n, const Attention& attention,
                                        const Mlp& mlp, std::string_view dropout_key = "dropout");

// GPT-2's: learned positions, two layer norms before the branches, its names around the layers.
[[nodiscard]] ModelSpec gpt2_decoder(const Config& c, const Sizes& n, const Attention& attention,
                                     const Mlp& mlp);

// "sliding_attention", "full_attention", ... of each layer: as the file lists them or, where it
// does not, as `otherwise` says.
[[nodiscard]] std::vector<std::string> layer_types(
    const Config& c, std::int64_t layers, const std::function<std::string(std::int64_t)>& otherwise,
    std::string_view keys = "layer_types");
// "full" or "shared" of each layer: whether its latent attention has an index of keys of its own.
[[nodiscard]] std::vector<std::string> indexer_types(const Config& c, std::int64_t layers);
// What a file says of one layer alone, by its number, filled up with zeros: "05".
[[nodiscard]] std::optional<Config> own_of_layer(const Config& all, std::int64_t layer);
[[nodiscard]] bool is_full(const std::vector<std::string>& types, std::int64_t layer);

}  // namespace shardsim::models
