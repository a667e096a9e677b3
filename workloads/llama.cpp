#include "workloads/llama.hpp"

#include <fmt/format.h>

#include "base/json.hpp"
#include "workloads/config_reader.hpp"
#include "workloads/graph_builder.hpp"

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
  bool head_norms = false;  // Qwen3's q_norm and k_norm
};

const std::vector<std::string> llama_keys = {"architectures",
                                             "model_type",
                                             "hidden_size",
                                             "num_hidden_layers",
                                             "num_attention_heads",
                                             "num_key_value_heads",
                                             "head_dim",
                                             "intermediate_size",
                                             "vocab_size",
                                             "tie_word_embeddings",
                                             "hidden_act",
                                             "attention_bias",
                                             "mlp_bias",
                                             "attention_dropout",
                                             "sliding_window",
                                             "use_sliding_window",
                                             "layer_types",
                                             "partial_rotary_factor",
                                             "quantization_config",
                                             "num_local_experts",
                                             "num_experts",
                                             "max_position_embeddings",
                                             "max_window_layers",
                                             "num_experts_per_tok"};

void refuse_what_is_not_built(const ConfigReader& config) {
  config.require("hidden_act", {"silu"});
  config.refuse_true("attention_bias");
  config.refuse_true("mlp_bias");
  config.refuse_nonzero("num_local_experts");
  config.refuse_nonzero("num_experts");
  config.refuse_set("quantization_config");
  if (config.flag_or("use_sliding_window", true)) config.refuse_set("sliding_window");
  if (const auto layers = config.json().find("layer_types")) {
    for (const JsonReader& layer : layers->elements()) {
      if (layer.string() != "full_attention") {
        layer.fail(
            fmt::format("\"{}\" is not supported; supported is full_attention", layer.string()));
      }
    }
  }
  if (const auto part = config.json().find("partial_rotary_factor"); part && part->number() != 1) {
    part->fail("only 1 is supported");
  }
}

LlamaSizes read_sizes(const ConfigReader& config) {
  refuse_what_is_not_built(config);
  LlamaSizes m;
  m.hidden = config.size("hidden_size");
  m.layers = config.layers("num_hidden_layers");
  m.heads = config.size("num_attention_heads");
  m.kv_heads = config.size_or("num_key_value_heads", m.heads);
  m.ffn = config.size("intermediate_size");
  m.vocab = config.size("vocab_size");
  m.tied = config.flag_or("tie_word_embeddings", false);
  config.require_divides("num_attention_heads", m.heads, "num_key_value_heads", m.kv_heads);
  if (const auto head_dim = config.json().find("head_dim")) {
    m.head_dim = config.size("head_dim");
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
        batch_(g_.label("batch", options.batch)),
        sequence_(g_.label("sequence", *options.sequence)),
        key_sequence_(g_.label("key_sequence", *options.sequence)),
        hidden_(g_.label("hidden", m_.hidden)),
        vocab_(g_.label("vocab", m_.vocab)),
        kv_heads_(g_.label("kv_heads", m_.kv_heads)),
        group_(g_.label("group", m_.heads / m_.kv_heads)),
        head_dim_(g_.label("head_dim", m_.head_dim)),
        ffn_(g_.label("ffn", m_.ffn)),
        index_dtype_(options.index_dtype) {}

  Workload build() {
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
    g_.begin_block("model.layers.{}", m_.layers);
    const TensorId x = g_.carry_in("model.layers.{}.input");
    const TensorId attended = attention(norm("model.layers.{}.input_layernorm", x));
    const TensorId h = g_.elementwise("add", "model.layers.{}.attention_residual", {x, attended});
    const TensorId fed = mlp(norm("model.layers.{}.post_attention_layernorm", h));
    g_.carry_out(g_.elementwise("add", "model.layers.{}.mlp_residual", {h, fed}));
  }

  TensorId norm(const std::string& name, TensorId x) {
    return g_.rms_norm(name, x, g_.parameter(name + ".weight", {{hidden_}}), hidden_);
  }

  TensorId head_norm(const std::string& name, TensorId x) {
    if (!m_.head_norms) return x;
    return g_.rms_norm(name, x, g_.parameter(name + ".weight", {{head_dim_}}), head_dim_);
  }

  TensorId attention(TensorId x) {
    const std::string at = "model.layers.{}.self_attn.";
    const Dim query_rows{kv_heads_, group_, head_dim_};
    const Dim key_rows{kv_heads_, head_dim_};
    const GraphBuilder::Dims query{{batch_}, {sequence_}, {kv_heads_}, {group_}, {head_dim_}};
    const GraphBuilder::Dims key{{batch_}, {sequence_}, {kv_heads_}, {head_dim_}};
    const auto project = [&](const std::string& name, const Dim& rows,
                             const GraphBuilder::Dims& to) {
      return g_.linear(at + name, x, g_.parameter(at + name + ".weight", {rows, {hidden_}}), to);
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
                                      {{sequence_, key_sequence_}}, /*causal=*/true);
    const TensorId weight = g_.parameter(at + "o_proj.weight", {{hidden_}, query_rows});
    return g_.linear(at + "o_proj", out, weight, stream());
  }

  TensorId mlp(TensorId x) {
    const std::string at = "model.layers.{}.mlp.";
    const GraphBuilder::Dims wide{{batch_}, {sequence_}, {ffn_}};
    const TensorId gate = g_.linear(
        at + "gate_proj", x, g_.parameter(at + "gate_proj.weight", {{ffn_}, {hidden_}}), wide);
    const TensorId activated = g_.elementwise("silu", at + "act_fn", {gate});
    const TensorId up = g_.linear(at + "up_proj", x,
                                  g_.parameter(at + "up_proj.weight", {{ffn_}, {hidden_}}), wide);
    const TensorId product = g_.elementwise("multiply", at + "product", {activated, up});
    return g_.linear(at + "down_proj", product,
                     g_.parameter(at + "down_proj.weight", {{hidden_}, {ffn_}}), stream());
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

Workload build(const ModelConfig& config, const WorkloadOptions& options, bool head_norms) {
  const ConfigReader reader(JsonReader(*config.json, {config.path, ""}), llama_keys);
  LlamaSizes sizes = read_sizes(reader);
  sizes.head_norms = head_norms;
  return LlamaBuilder(config.name, sizes, options).build();
}

}  // namespace

Workload build_llama(const ModelConfig& config, const WorkloadOptions& options) {
  return build(config, options, /*head_norms=*/false);
}

Workload build_qwen3(const ModelConfig& config, const WorkloadOptions& options) {
  return build(config, options, /*head_norms=*/true);
}

}  // namespace shardsim
