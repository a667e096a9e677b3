#include "workloads/models/gpt2.hpp"

#include <fmt/format.h>

#include "base/json.hpp"
#include "workloads/graph/graph_builder.hpp"
#include "workloads/models/config_reader.hpp"

namespace shardsim {
namespace {

struct Gpt2Sizes {
  std::int64_t hidden = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t ffn = 0;
  std::int64_t positions = 0;
  std::int64_t vocab = 0;
  bool tied = true;
};

// Sizes go by two names: transformers' attribute_map of GPT2Config.
std::vector<std::string> gpt2_keys() {
  std::vector<std::string> keys = common_config_keys();
  keys.insert(keys.end(), {"n_embd", "hidden_size", "n_layer", "num_hidden_layers", "n_head",
                           "num_attention_heads", "n_inner", "n_positions",
                           "max_position_embeddings", "activation_function",
                           "reorder_and_upcast_attn", "resid_pdrop", "embd_pdrop", "attn_pdrop"});
  return keys;
}

Gpt2Sizes read_sizes(const ConfigReader& config, std::int64_t sequence) {
  refuse_common(config);
  config.require("activation_function", {"gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh"});
  config.refuse_true("reorder_and_upcast_attn");
  Gpt2Sizes m;
  const std::string hidden = config.either("n_embd", "hidden_size");
  const std::string heads = config.either("n_head", "num_attention_heads");
  m.hidden = config.size(hidden);
  m.layers = config.layers(config.either("n_layer", "num_hidden_layers"));
  m.heads = config.size(heads);
  m.ffn = config.size_or("n_inner", 4 * m.hidden);
  const std::string positions = config.either("n_positions", "max_position_embeddings");
  m.positions = config.size(positions);
  m.vocab = config.size("vocab_size");
  m.tied = config.flag_or("tie_word_embeddings", true);
  config.require_divides(hidden, m.hidden, heads, m.heads);
  if (sequence > m.positions) {
    config.json().at(positions).fail(fmt::format(
        "the model has {} positions, fewer than the sequence's {} tokens", m.positions, sequence));
  }
  return m;
}

class Gpt2Builder {
 public:
  Gpt2Builder(const std::string& name, const Gpt2Sizes& sizes, const WorkloadOptions& options)
      : m_(sizes),
        g_(name, options.compute_dtype, options.weights),
        batch_(g_.label("batch", options.batch, LabelRole::batch)),
        sequence_(g_.label("sequence", *options.sequence, LabelRole::sequence)),
        key_sequence_(g_.label("key_sequence", *options.sequence, LabelRole::key_sequence)),
        hidden_(g_.label("hidden", m_.hidden, LabelRole::hidden)),
        vocab_(g_.label("vocab", m_.vocab, LabelRole::vocab)),
        positions_(g_.label("positions", m_.positions)),
        qkv_(g_.label("qkv", 3)),
        heads_(g_.label("heads", m_.heads, LabelRole::heads)),
        head_dim_(g_.label("head_dim", m_.hidden / m_.heads)),
        ffn_(g_.label("ffn", m_.ffn, LabelRole::width)),
        index_dtype_(options.index_dtype) {}

  Workload build(const ConfigReader& config) {
    constexpr double default_rate = 0.1;  // of GPT2Config
    for (const char* key : {"embd_pdrop", "attn_pdrop", "resid_pdrop"}) {
      if (config.rate_or(key, default_rate) == 0) continue;
      g_.note(fmt::format("dropout is left out ({}{})", key,
                          config.json().find(key) ? "" : ", 0.1 where a file does not say it"));
    }
    embed();
    layer();
    const TensorId loss = head();
    return g_.finish(loss);
  }

 private:
  [[nodiscard]] GraphBuilder::Dims stream() const { return {{batch_}, {sequence_}, {hidden_}}; }

  TensorId embedding_weight() {
    return g_.parameter("transformer.wte.weight", {{vocab_}, {hidden_}});
  }

  void embed() {
    g_.begin_block("embedding");
    const TensorId ids = g_.input("input_ids", index_dtype_, {{batch_}, {sequence_}});
    const TensorId position_ids = g_.constant("position_ids", index_dtype_, {{sequence_}});
    const TensorId table = g_.parameter("transformer.wpe.weight", {{positions_}, {hidden_}});
    const TensorId tokens = g_.embedding("transformer.wte", ids, embedding_weight(), stream());
    const TensorId positions =
        g_.embedding("transformer.wpe", position_ids, table, {{sequence_}, {hidden_}});
    g_.carry_out(
        g_.marked(g_.elementwise(Function::add, "transformer.positions", {tokens, positions}),
                  StreamMark::stream));
  }

  void layer() {
    g_.begin_layers("transformer.h.{}", m_.layers);
    const TensorId x = g_.carry_in("transformer.h.{}.input");
    const TensorId attended = attention(norm("transformer.h.{}.ln_1", x));
    const TensorId h = g_.marked(
        g_.elementwise(Function::add, "transformer.h.{}.attention_residual", {x, attended}),
        StreamMark::stream);
    const TensorId fed = mlp(norm("transformer.h.{}.ln_2", h));
    g_.carry_out(g_.marked(g_.elementwise(Function::add, "transformer.h.{}.mlp_residual", {h, fed}),
                           StreamMark::stream));
  }

  TensorId norm(const std::string& name, TensorId x) {
    const TensorId weight = g_.parameter(name + ".weight", {{hidden_}});
    const TensorId bias = g_.parameter(name + ".bias", {{hidden_}});
    return g_.marked(g_.layer_norm(name, x, weight, bias, hidden_), StreamMark::branch);
  }

  // Conv1D: weight [in, out].
  TensorId conv1d(const std::string& name, TensorId x, const Dim& in, const Dim& out,
                  GraphBuilder::Dims result) {
    const TensorId weight = g_.parameter(name + ".weight", {in, out});
    const TensorId bias = g_.parameter(name + ".bias", {out});
    return g_.linear(name, x, weight, std::move(result), bias);
  }

  TensorId attention(TensorId x) {
    const std::string at = "transformer.h.{}.attn.";
    const TensorId fused = conv1d(at + "c_attn", x, {hidden_}, {qkv_, heads_, head_dim_},
                                  {{batch_}, {sequence_}, {qkv_}, {heads_}, {head_dim_}});
    const std::vector<TensorId> parts =
        g_.split({at + "query", at + "key", at + "value"}, fused, qkv_);
    const TensorId out = g_.attention(at + "attention", parts[0], parts[1], parts[2], head_dim_,
                                      {{sequence_, key_sequence_}}, {.fraction = 0.5});
    return conv1d(at + "c_proj", out, {heads_, head_dim_}, {hidden_}, stream());
  }

  TensorId mlp(TensorId x) {
    const std::string at = "transformer.h.{}.mlp.";
    const TensorId wide =
        conv1d(at + "c_fc", x, {hidden_}, {ffn_}, {{batch_}, {sequence_}, {ffn_}});
    const TensorId activated = g_.elementwise(Function::gelu, at + "act", {wide});
    return conv1d(at + "c_proj", activated, {ffn_}, {hidden_}, stream());
  }

  TensorId head() {
    g_.begin_block("head");
    const TensorId x = norm("transformer.ln_f", g_.carry_in("transformer.ln_f.input"));
    const TensorId weight =
        m_.tied ? embedding_weight() : g_.parameter("lm_head.weight", {{vocab_}, {hidden_}});
    const TensorId logits = g_.linear("lm_head", x, weight, {{batch_}, {sequence_}, {vocab_}});
    const TensorId labels = g_.input("labels", index_dtype_, {{batch_}, {sequence_}});
    return g_.cross_entropy(g_.cast("loss.logits", logits, DType::f32), labels, vocab_);
  }

  Gpt2Sizes m_;
  GraphBuilder g_;
  LabelId batch_, sequence_, key_sequence_, hidden_, vocab_, positions_, qkv_, heads_, head_dim_,
      ffn_;
  DType index_dtype_;
};

}  // namespace

Workload build_gpt2(const ModelConfig& config, const WorkloadOptions& options) {
  const ConfigReader reader(JsonReader(*config.json, {config.path, ""}), gpt2_keys());
  const Gpt2Sizes sizes = read_sizes(reader, *options.sequence);
  return Gpt2Builder(config.name, sizes, options).build(reader);
}

}  // namespace shardsim
