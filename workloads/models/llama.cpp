#include "workloads/models/llama.hpp"

#include <fmt/format.h>

#include "base/json.hpp"
#include "workloads/graph/graph_builder.hpp"
#include "workloads/models/config_reader.hpp"

namespace shardsim {
namespace {

struct LlamaSizes {
  std::int64_t hidden = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t ffn = 0;
  std::int64_t vocab = 0;
  bool tied = false;
  bool attention_bias = false;  // of q, k, v and o
  bool mlp_bias = false;        // of gate, up and down
  bool head_norms = false;      // Qwen3's q_norm and k_norm
};

std::vector<std::string> llama_keys() {
  std::vector<std::string> keys = common_config_keys();
  keys.insert(keys.end(),
              {"hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
               "head_dim", "intermediate_size", "hidden_act", "attention_bias", "mlp_bias",
               "attention_dropout", "sliding_window", "use_sliding_window", "max_window_layers",
               "layer_types", "partial_rotary_factor", "rope_parameters", "num_local_experts",
               "num_experts", "num_experts_per_tok"});
  return keys;
}

// Whose defaults a file follows where transformers' two classes differ.
enum class Kind : std::uint8_t { llama, qwen3 };

// Qwen3's window is of the layers from max_window_layers on (28 where nothing is said).
bool has_windows(const ConfigReader& config, Kind kind) {
  constexpr std::int64_t default_window_layers = 28;
  if (!config.json().find("sliding_window")) return false;
  if (!config.flag_or("use_sliding_window", kind == Kind::llama)) return false;
  return kind == Kind::llama || config.integer_or("max_window_layers", default_window_layers) <
                                    config.size("num_hidden_layers");
}

// Rotary parameters may be given for each type of layer.
void refuse_partial_rotary(const JsonReader& json) {
  const auto part = json.find("partial_rotary_factor");
  if (part && part->number() != 1) part->fail("only 1 is supported");
  for (const auto& [key, value] : json.members()) {
    if (value.is_object()) refuse_partial_rotary(value);
  }
}

void refuse_what_is_not_built(const ConfigReader& config, Kind kind) {
  refuse_common(config);
  config.require("hidden_act", {"silu", "swish"});
  if (kind == Kind::qwen3) config.refuse_true("mlp_bias");
  config.refuse_nonzero("num_local_experts");
  config.refuse_nonzero("num_experts");
  if (has_windows(config, kind)) config.refuse_set("sliding_window");
  if (const auto layers = config.json().find("layer_types")) {
    for (const JsonReader& layer : layers->elements()) {
      if (layer.string() != "full_attention") {
        layer.fail(
            fmt::format("\"{}\" is not supported; supported is full_attention", layer.string()));
      }
    }
  }
  refuse_partial_rotary(config.json());
}

LlamaSizes read_sizes(const ConfigReader& config, Kind kind) {
  refuse_what_is_not_built(config, kind);
  // Qwen3Config's own defaults, which do not follow from the other sizes.
  constexpr std::int64_t qwen3_kv_heads = 32;
  constexpr std::int64_t qwen3_head_dim = 128;
  const auto is_missing = [&](const char* key) {
    return kind == Kind::qwen3 && !config.json().json().contains(key);
  };
  LlamaSizes m;
  m.head_norms = kind == Kind::qwen3;
  m.hidden = config.size("hidden_size");
  m.layers = config.layers("num_hidden_layers");
  m.heads = config.size("num_attention_heads");
  m.kv_heads = config.size_or("num_key_value_heads",
                              is_missing("num_key_value_heads") ? qwen3_kv_heads : m.heads);
  m.ffn = config.size("intermediate_size");
  m.vocab = config.size("vocab_size");
  m.tied = config.flag_or("tie_word_embeddings", false);
  m.attention_bias = config.flag_or("attention_bias", false);
  m.mlp_bias = config.flag_or("mlp_bias", false);
  config.require_divides("num_attention_heads", m.heads, "num_key_value_heads", m.kv_heads,
                         is_missing("num_key_value_heads") ? " (the default of Qwen3Config)" : "");
  if (config.json().find("head_dim") || is_missing("head_dim")) {
    m.head_dim = config.size_or("head_dim", qwen3_head_dim);
  } else {
    config.require_divides("hidden_size", m.hidden, "num_attention_heads", m.heads);
    m.head_dim = m.hidden / m.heads;
  }
  if (m.head_dim % 2 != 0) {
    config.json().fail(fmt::format("head_dim {} is odd: rotary embedding turns pairs", m.head_dim));
  }
  return m;
}

class LlamaBuilder {
 public:
  LlamaBuilder(const std::string& name, const LlamaSizes& sizes, const WorkloadOptions& options)
      : m_(sizes),
        g_(name, options.compute_dtype, options.weights),
        batch_(g_.label("batch", options.batch, LabelRole::batch)),
        sequence_(g_.label("sequence", *options.sequence, LabelRole::sequence)),
        key_sequence_(g_.label("key_sequence", *options.sequence, LabelRole::key_sequence)),
        hidden_(g_.label("hidden", m_.hidden, LabelRole::hidden)),
        vocab_(g_.label("vocab", m_.vocab, LabelRole::vocab)),
        kv_heads_(g_.label("kv_heads", m_.kv_heads, LabelRole::heads)),
        group_(g_.label("group", m_.heads / m_.kv_heads, LabelRole::head_group)),
        head_dim_(g_.label("head_dim", m_.head_dim)),
        ffn_(g_.label("ffn", m_.ffn, LabelRole::width)),
        index_dtype_(options.index_dtype) {}

  Workload build(const ConfigReader& config) {
    if (config.rate_or("attention_dropout", 0) > 0) {
      g_.note("dropout is left out (attention_dropout)");
    }
    embed();
    layer();
    const TensorId loss = head();
    return g_.finish(loss);
  }

 private:
  [[nodiscard]] GraphBuilder::Dims stream() const { return {{batch_}, {sequence_}, {hidden_}}; }

  TensorId embedding_weight() {
    return g_.parameter("model.embed_tokens.weight", {{vocab_}, {hidden_}});
  }

  void embed() {
    g_.begin_block("embedding");
    const TensorId ids = g_.input("input_ids", index_dtype_, {{batch_}, {sequence_}});
    g_.carry_out(g_.embedding("model.embed_tokens", ids, embedding_weight(), stream()));
  }

  void layer() {
    g_.begin_layers("model.layers.{}", m_.layers);
    const TensorId x = g_.carry_in("model.layers.{}.input");
    const TensorId attended = attention(norm("model.layers.{}.input_layernorm", x));
    const TensorId h = g_.marked(
        g_.elementwise(Function::add, "model.layers.{}.attention_residual", {x, attended}),
        StreamMark::stream);
    const TensorId fed = mlp(norm("model.layers.{}.post_attention_layernorm", h));
    g_.carry_out(g_.marked(g_.elementwise(Function::add, "model.layers.{}.mlp_residual", {h, fed}),
                           StreamMark::stream));
  }

  TensorId norm(const std::string& name, TensorId x) {
    return g_.marked(g_.rms_norm(name, x, g_.parameter(name + ".weight", {{hidden_}}), hidden_),
                     StreamMark::branch);
  }

  TensorId head_norm(const std::string& name, TensorId x) {
    if (!m_.head_norms) return x;
    return g_.rms_norm(name, x, g_.parameter(name + ".weight", {{head_dim_}}), head_dim_);
  }

  // nn.Linear: weight [out, in], bias [out].
  TensorId linear(const std::string& name, TensorId x, const GraphBuilder::Dims& weight,
                  const GraphBuilder::Dims& result, bool has_bias) {
    const TensorId matrix = g_.parameter(name + ".weight", weight);
    const TensorId bias = has_bias ? g_.parameter(name + ".bias", {weight[0]}) : no_tensor;
    return g_.linear(name, x, matrix, result, bias);
  }

  TensorId attention(TensorId x) {
    const std::string at = "model.layers.{}.self_attn.";
    const Dim query_rows{kv_heads_, group_, head_dim_};
    const Dim key_rows{kv_heads_, head_dim_};
    const GraphBuilder::Dims query{{batch_}, {sequence_}, {kv_heads_}, {group_}, {head_dim_}};
    const GraphBuilder::Dims key{{batch_}, {sequence_}, {kv_heads_}, {head_dim_}};
    const auto project = [&](const std::string& name, const Dim& rows,
                             const GraphBuilder::Dims& to) {
      return linear(at + name, x, {rows, {hidden_}}, to, m_.attention_bias);
    };
    TensorId q = project("q_proj", query_rows, query);
    TensorId k = project("k_proj", key_rows, key);
    const TensorId v = project("v_proj", key_rows, key);
    q = head_norm(at + "q_norm", q);
    k = head_norm(at + "k_norm", k);

    const GraphBuilder::Dims angles{{sequence_}, {head_dim_}};
    if (cos_ == no_tensor) {
      cos_ = g_.constant("rope.cos", g_.compute_dtype(), angles);
      sin_ = g_.constant("rope.sin", g_.compute_dtype(), angles);
    }
    q = g_.rope(at + "q_rope", q, cos_, sin_, head_dim_);
    k = g_.rope(at + "k_rope", k, cos_, sin_, head_dim_);
    const TensorId out = g_.attention(at + "attention", q, k, v, head_dim_,
                                      {{sequence_, key_sequence_}}, {.fraction = 0.5});
    return linear(at + "o_proj", out, {{hidden_}, query_rows}, stream(), m_.attention_bias);
  }

  TensorId mlp(TensorId x) {
    const std::string at = "model.layers.{}.mlp.";
    const GraphBuilder::Dims wide{{batch_}, {sequence_}, {ffn_}};
    const TensorId gate = linear(at + "gate_proj", x, {{ffn_}, {hidden_}}, wide, m_.mlp_bias);
    const TensorId activated = g_.elementwise(Function::silu, at + "act_fn", {gate});
    const TensorId up = linear(at + "up_proj", x, {{ffn_}, {hidden_}}, wide, m_.mlp_bias);
    const TensorId product = g_.elementwise(Function::multiply, at + "product", {activated, up});
    return linear(at + "down_proj", product, {{hidden_}, {ffn_}}, stream(), m_.mlp_bias);
  }

  TensorId head() {
    g_.begin_block("head");
    const TensorId x = norm("model.norm", g_.carry_in("model.norm.input"));
    const TensorId weight =
        m_.tied ? embedding_weight() : g_.parameter("lm_head.weight", {{vocab_}, {hidden_}});
    const TensorId logits = g_.linear("lm_head", x, weight, {{batch_}, {sequence_}, {vocab_}});
    const TensorId labels = g_.input("labels", index_dtype_, {{batch_}, {sequence_}});
    return g_.cross_entropy(g_.cast("loss.logits", logits, DType::f32), labels, vocab_);
  }

  LlamaSizes m_;
  GraphBuilder g_;
  LabelId batch_, sequence_, key_sequence_, hidden_, vocab_, kv_heads_, group_, head_dim_, ffn_;
  DType index_dtype_;
  TensorId cos_ = no_tensor;
  TensorId sin_ = no_tensor;
};

Workload build(const ModelConfig& config, const WorkloadOptions& options, Kind kind) {
  const ConfigReader reader(JsonReader(*config.json, {config.path, ""}), llama_keys());
  return LlamaBuilder(config.name, read_sizes(reader, kind), options).build(reader);
}

}  // namespace

Workload build_llama(const ModelConfig& config, const WorkloadOptions& options) {
  return build(config, options, Kind::llama);
}

Workload build_qwen3(const ModelConfig& config, const WorkloadOptions& options) {
  return build(config, options, Kind::qwen3);
}

}  // namespace shardsim
