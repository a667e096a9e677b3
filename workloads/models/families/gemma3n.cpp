// Gemma 3n: four streams by alternating updates, low-rank residuals, inputs of each layer beside
// the stream, keys and values that later layers share, gates of which a small part counts.
//
// Source: transformers 5.23.0, configuration_gemma3n.py and modeling_gemma3n.py.
#include <fmt/format.h>

#include "base/json.hpp"
#include "workloads/models/families/families.hpp"
#include "workloads/models/families/key_sharing.hpp"

namespace shardsim::models {
namespace {

constexpr std::int64_t sparse_layers = 10;  // by default, of models that have more

[[noreturn]] void fail_length(const JsonReader& list, std::size_t entries, std::int64_t layers) {
  list.fail(fmt::format("has {} entries for {} layers", entries, layers));
}

// A number for each layer, or one for all; none where the file is silent.
std::vector<double> numbers_of(const Config& c, std::string_view key, std::int64_t layers) {
  c.pass_over({key});
  const auto value = c.json().find(key);
  std::vector<double> numbers;
  if (!value) return numbers;
  if (!value->is_array()) {
    numbers.assign(static_cast<std::size_t>(layers), value->number());
    return numbers;
  }
  for (const JsonReader& one : value->elements()) numbers.push_back(one.number());
  if (static_cast<std::int64_t>(numbers.size()) != layers) {
    fail_length(*value, numbers.size(), layers);
  }
  return numbers;
}

std::vector<std::int64_t> widths_of(const Config& c, std::int64_t layers) {
  const auto value = c.json().find("intermediate_size");
  if (!value || !value->is_array()) {
    return std::vector<std::int64_t>(static_cast<std::size_t>(layers),
                                     c.needed("intermediate_size", 16'384));
  }
  std::vector<std::int64_t> widths = c.sizes("intermediate_size", {});
  if (static_cast<std::int64_t>(widths.size()) != layers) {
    fail_length(*value, widths.size(), layers);
  }
  return widths;
}

class Gemma3n {
 public:
  explicit Gemma3n(const Config& c)
      : c_(c),
        n_(read_sizes(c, {.kv_heads = 2,
                          .head_dim = 256,
                          .tied = true,
                          .activation = "gelu_pytorch_tanh",
                          .activation_keys = "hidden_activation|hidden_act",
                          .has_width = false,
                          .hidden = 2048,
                          .vocab = 262'400})),
        sharing_(read_key_sharing(c, n_, types(), 15)),
        widths_(widths_of(c, n_.layers)),
        sparsity_(numbers_of(c, "activation_sparsity_pattern", n_.layers)),
        inputs_(c.size("altup_num_inputs", 4)),
        per_layer_(c.size("hidden_size_per_layer_input", 256)) {
    if (c.count("altup_active_idx", 0) != 0) {
      c.fail("altup_active_idx", "only 0, the first stream, is supported");
    }
  }

  ModelSpec read() {
    ModelSpec spec = decoder(n_, Layers::of(n_.layers, [&](std::int64_t i) { return layer(i); }));
    Stack& stack = spec.stacks[0];
    std::get<TokenEmbedding>(stack.input).scaled = true;
    stack.norm = power_norm("model.norm");
    stack.altup = AltUpEnds{.inputs = inputs_};
    stack.per_layer = PerLayerInputs{.table = "model.embed_tokens_per_layer",
                                     .vocab = c_.size("vocab_size_per_layer_input", 262'144),
                                     .width = per_layer_,
                                     .project = "model.per_layer_model_projection",
                                     .norm = power_norm("model.per_layer_projection_norm"),
                                     .made_ids = true};
    spec.head.soft_cap = c_.cap("final_logit_softcapping", 30);
    return spec;
  }

 private:
  [[nodiscard]] std::vector<std::string> types() const {
    constexpr std::int64_t period = 5;
    return layer_types(c_, n_.layers, [](std::int64_t i) {
      return std::string((i + 1) % period != 0 ? "sliding_attention" : "full_attention");
    });
  }

  [[nodiscard]] bool is_sparse(std::int64_t i) const {
    if (sparsity_.empty()) return n_.layers > sparse_layers && i < sparse_layers;
    return sparsity_[static_cast<std::size_t>(i)] > 0;
  }

  [[nodiscard]] Attention attention(std::int64_t i) const {
    const std::string& type = sharing_.types[static_cast<std::size_t>(i)];
    const bool full = type == "full_attention";
    Attention a = llama_attention(c_, n_);
    a.rotary.table = full ? "rotary" : "rotary of windows";
    a.window = full ? 0 : c_.count("sliding_window", 512);
    sharing_.set(i, a);
    return a;
  }

  [[nodiscard]] LayerKind layer(std::int64_t i) const {
    const Attention a = attention(i);
    Mlp mlp = llama_mlp(n_);
    mlp.width = widths_[static_cast<std::size_t>(i)];
    mlp.sparse = is_sparse(i);
    const AltUp altup{.inputs = inputs_,
                      .scales_first = c_.flag("altup_correct_scale", true),
                      .clips = c_.cap("altup_coef_clip", 120) > 0,
                      .router_norm = power_norm("router_norm")};
    return {.name = fmt::format("{}{}{}", a.window > 0 ? "windowed" : "full",
                                !a.reads.empty()      ? ", reads keys"
                                : !a.hands_on.empty() ? ", hands keys on"
                                                      : "",
                                mlp.sparse ? ", sparse" : ""),
            .branches = {{.before = power_norm("input_layernorm"),
                          .body = a,
                          .after = power_norm("post_attention_layernorm"),
                          .laurel = Laurel{.rank = c_.size("laurel_rank", 64),
                                           .norm = power_norm("post_laurel_norm")}},
                         {.before = power_norm("pre_feedforward_layernorm"),
                          .body = mlp,
                          .after = power_norm("post_feedforward_layernorm")},
                         {.body = PerLayerGate{.width = per_layer_, .activation = n_.activation},
                          .after = power_norm("post_per_layer_input_norm")}},
            .altup = altup};
  }

  const Config& c_;
  Sizes n_;
  KeySharing sharing_;
  std::vector<std::int64_t> widths_;
  std::vector<double> sparsity_;
  std::int64_t inputs_;
  std::int64_t per_layer_;
};

}  // namespace

ModelSpec gemma3n_text(const Config& c) { return Gemma3n(c).read(); }

std::vector<Family> gemma3n_families() {
  return {{"Gemma3nForCausalLM", "gemma3n_text", gemma3n_text}};
}

}  // namespace shardsim::models
