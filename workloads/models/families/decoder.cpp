#include "workloads/models/families/decoder.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace shardsim::models {

Sizes read_sizes(const Config& c, const SizeDefaults& defaults) {
  Sizes n;
  n.hidden = c.needed("hidden_size|n_embd|d_model", defaults.hidden);
  constexpr std::string_view layers = "num_hidden_layers|n_layer|num_layers|n_layers";
  const bool listed = defaults.layers && !c.given(layers);
  n.layers = listed ? *defaults.layers : c.layers(layers, 32);
  n.heads = c.needed("num_attention_heads|n_head|num_heads|n_heads|attention_heads", 32);
  n.kv_heads = c.size("num_key_value_heads", defaults.kv_heads.value_or(n.heads));
  n.vocab = c.needed("vocab_size", defaults.vocab);
  if (defaults.has_width) n.width = c.needed(defaults.width_keys, defaults.width);
  n.tied = c.flag("tie_word_embeddings", defaults.tied);
  n.activation = c.activation(defaults.activation_keys, defaults.activation);
  static_cast<void>(c.divided("num_attention_heads|n_head|num_heads", n.heads,
                              "num_key_value_heads", n.kv_heads));
  if (c.given("head_dim")) {
    n.head_dim = c.size("head_dim");
  } else {
    n.head_dim = defaults.head_dim ? *defaults.head_dim
                                   : c.divided("hidden_size|n_embd", n.hidden,
                                               "num_attention_heads|n_head", n.heads);
  }
  return n;
}

void set_biases(Attention& attention, bool qkv, bool o) {
  attention.q_bias = attention.k_bias = attention.v_bias = qkv;
  attention.o_bias = o;
}

Norm layer_norm(std::string name) { return {NormKind::layer, std::move(name), /*bias=*/true}; }

Mlp plain_mlp(const Sizes& n, std::string up, std::string down) {
  Mlp mlp;
  mlp.width = n.width;
  mlp.form = MlpForm::plain;
  mlp.activation = n.activation;
  mlp.bias = true;
  mlp.up = std::move(up);
  mlp.down = std::move(down);
  return mlp;
}

std::int64_t rotary_dims(const Config& c, std::int64_t head_dim, double otherwise) {
  return static_cast<std::int64_t>(static_cast<double>(head_dim) *
                                   c.rotary_number("partial_rotary_factor", otherwise));
}

Attention llama_attention(const Config& c, const Sizes& n) {
  Attention attention;
  attention.heads = n.heads;
  attention.kv_heads = n.kv_heads;
  attention.head_dim = n.head_dim;
  attention.rotary.dims = n.head_dim;
  attention.dropout = c.rate("attention_dropout", 0);
  const bool bias = c.flag("attention_bias", false);
  set_biases(attention, bias, bias);
  return attention;
}

Mlp llama_mlp(const Sizes& n) {
  Mlp mlp;
  mlp.width = n.width;
  mlp.activation = n.activation;
  return mlp;
}

LayerKind llama_layer(const Sizes& n, std::string name, Attention attention, Body feed_forward) {
  return {.name = std::move(name),
          .branches = {
              {.before = {n.norm, "input_layernorm"}, .body = std::move(attention)},
              {.before = {n.norm, "post_attention_layernorm"}, .body = std::move(feed_forward)}}};
}

// Every expert's size is a share of the tokens': a token cannot visit more than there are.
Experts read_experts(const Config& c, const Sizes& n, std::string_view number_keys,
                     std::int64_t number, std::string_view per_token_keys, std::int64_t per_token,
                     std::int64_t width) {
  Experts experts;
  experts.experts = c.size(number_keys, number);
  experts.per_token = c.size(per_token_keys, per_token);
  experts.width = width;
  experts.activation = n.activation;
  if (experts.per_token > experts.experts) {
    c.fail(per_token_keys, "is more than there are experts");
  }
  return experts;
}

Experts qwen_experts(const Config& c, const Sizes& n, std::int64_t number, std::int64_t per_token,
                     std::int64_t width, std::int64_t shared, bool renormalize) {
  Experts experts =
      read_experts(c, n, "num_experts|num_local_experts", number, "num_experts_per_tok", per_token,
                   c.size("moe_intermediate_size", width));
  experts.router.cast_back = true;
  if (c.flag("norm_topk_prob", renormalize)) {
    experts.router.renormalize = Renormalize::in_place;
  }
  if (shared > 0) {
    experts.shared = llama_mlp(n);
    experts.shared->name = "shared_expert";
    experts.shared->width = shared;
    experts.shared_gate = "shared_expert_gate";
  }
  return experts;
}

// Which layers have experts: every decoder_sparse_step-th, unless mlp_only_layers has it.
bool qwen_has_experts(const Config& c, std::int64_t layer) {
  const std::vector<std::int64_t> dense = c.integers("mlp_only_layers");
  const std::int64_t step = c.size("decoder_sparse_step", 1);
  return std::find(dense.begin(), dense.end(), layer) == dense.end() && (layer + 1) % step == 0;
}

void Layers::add(LayerKind kind) {
  const auto known = std::find(kinds.begin(), kinds.end(), kind);
  order.push_back(static_cast<int>(known - kinds.begin()));
  if (known == kinds.end()) kinds.push_back(std::move(kind));
}

Layers Layers::of(std::int64_t n, const std::function<LayerKind(std::int64_t)>& make) {
  Layers layers;
  for (std::int64_t i = 0; i < n; ++i) layers.add(make(i));
  return layers;
}

void set_multipliers(const Config& c, ModelSpec& spec) {
  // Of 1, too: the class multiplies in any case.
  for (const char* key : {"embedding_multiplier", "residual_multiplier", "logits_scaling"}) {
    static_cast<void>(c.number(key, 1));
  }
  std::get<TokenEmbedding>(spec.stacks[0].input).scaled = true;
  for (LayerKind& kind : spec.stacks[0].kinds) {
    for (Branch& branch : kind.branches) branch.multiplied = true;
  }
  spec.head.scaled = true;
}

void set_tied(ModelSpec& spec, bool tied) {
  const auto& embedding = std::get<TokenEmbedding>(spec.stacks.back().input);
  spec.head.tied_to = tied ? embedding.name + ".weight" : std::string();
}

ModelSpec decoder(const Sizes& n, Layers layers) {
  ModelSpec spec;
  Stack stack;
  stack.hidden = n.hidden;
  stack.input = TokenEmbedding{.vocab = n.vocab, .width = n.hidden};
  stack.kinds = std::move(layers.kinds);
  stack.order = std::move(layers.order);
  stack.norm = {n.norm, "model.norm"};
  spec.stacks.push_back(std::move(stack));
  spec.head.vocab = n.vocab;
  set_tied(spec, n.tied);
  return spec;
}

ModelSpec decoder(const Sizes& n, const LayerKind& kind) {
  return decoder(n, Layers::of(n.layers, [&](std::int64_t) { return kind; }));
}

std::vector<std::string> layer_types(const Config& c, std::int64_t layers,
                                     const std::function<std::string(std::int64_t)>& otherwise,
                                     std::string_view keys) {
  std::vector<std::string> types = c.texts(keys);
  c.pass_over({"sliding_window"});  // read where a layer slides
  if (types.empty()) {
    for (std::int64_t i = 0; i < layers; ++i) types.push_back(otherwise(i));
  }
  if (static_cast<std::int64_t>(types.size()) != layers) {
    c.fail(keys, fmt::format("has {} entries for {} layers", types.size(), layers));
  }
  return types;
}

std::vector<std::string> indexer_types(const Config& c, std::int64_t layers) {
  const std::int64_t step = std::max<std::int64_t>(c.count("index_topk_freq", 1), 1);
  const std::int64_t offset = c.integer("index_skip_topk_offset", 2);
  const std::string pattern = c.text("index_topk_pattern", "");
  const auto otherwise = [&](std::int64_t i) {
    const auto at = static_cast<std::size_t>(i);
    const bool full = at < pattern.size() ? pattern[at] == 'F'
                                          : std::max<std::int64_t>(i - offset + 1, 0) % step == 0;
    return std::string(full ? "full" : "shared");
  };
  return layer_types(c, layers, otherwise, "indexer_types");
}

bool is_full(const std::vector<std::string>& types, std::int64_t layer) {
  return types[static_cast<std::size_t>(layer)] == "full_attention";
}

std::optional<Config> own_of_layer(const Config& all, std::int64_t layer) {
  for (const int digits : {1, 2, 3, 4}) {
    if (auto own = all.sub(fmt::format("{:0{}}", layer, digits))) return own;
  }
  return std::nullopt;
}

ModelSpec gpt2_decoder(const Config& c, const Sizes& n, const Attention& attention,
                       const Mlp& mlp) {
  ModelSpec spec = decoder(n, {.name = "full",
                               .branches = {{.before = layer_norm("ln_1"), .body = attention},
                                            {.before = layer_norm("ln_2"), .body = mlp}}});
  Stack& stack = spec.stacks[0];
  stack.prefix = "transformer.h";
  stack.norm = layer_norm("transformer.ln_f");
  stack.input = TokenEmbedding{.name = "transformer.wte",
                               .vocab = n.vocab,
                               .width = n.hidden,
                               .positions = "transformer.wpe",
                               .position_rows = c.size("n_positions|max_position_embeddings", 1024),
                               .dropout_name = "transformer.drop",
                               .dropout = c.rate("embd_pdrop", 0.1)};
  set_tied(spec, n.tied);
  return spec;
}

Attention fairseq_attention(const Config& c, const Sizes& n) {
  Attention attention;
  attention.heads = attention.kv_heads = n.heads;
  attention.head_dim = n.head_dim;
  attention.o = "out_proj";
  set_biases(attention, true, true);
  attention.dropout = c.rate("attention_dropout", 0.1);
  attention.fp32_softmax = false;
  return attention;
}

Mlp fairseq_mlp(const Config& c, const Sizes& n, std::string name) {
  Mlp mlp = plain_mlp(n, "fc1", "fc2");
  mlp.name = std::move(name);
  mlp.inner_dropout = c.rate("activation_dropout", 0);
  return mlp;
}

ModelSpec fairseq_decoder(const Config& c, const Sizes& n, const Attention& attention,
                          const Mlp& mlp, std::string_view dropout_key) {
  const double dropout = c.rate(dropout_key, 0.1);
  ModelSpec spec = decoder(
      n, {.name = "full",
          .branches = {
              {.before = layer_norm("self_attn_layer_norm"), .body = attention, .dropout = dropout},
              {.before = layer_norm("final_layer_norm"), .body = mlp, .dropout = dropout}}});
  Stack& stack = spec.stacks[0];
  stack.norm = layer_norm("model.layer_norm");
  stack.input = TokenEmbedding{.name = "model.embed_tokens",
                               .vocab = n.vocab,
                               .width = n.hidden,
                               .scaled = c.flag("scale_embedding", true),
                               .dropout = dropout};
  return spec;
}

}  // namespace shardsim::models
