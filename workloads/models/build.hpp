// From a model's description to the op graph of its forward pass.
//
//   Workload w = build_workload(load_model_config("llama-3.1-8b", "", {}),
//                               {.batch = 64, .sequence = 8192});
//
// What a step makes of it, backward pass and optimizer, is step/step.hpp's.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.hpp"
#include "base/error.hpp"
#include "base/json_reader.hpp"
#include "base/owned_json.hpp"
#include "workloads/graph/op_graph.hpp"
#include "workloads/models/documents.hpp"

namespace shardsim {

// Of one layer: rows of the device that gets most of them, over those of an even routing, and which
// part of these the device has that gets most of all layers together.
struct ExpertRows {
  double most = 1;
  double held = 1;
  friend bool operator==(const ExpertRows&, const ExpertRows&) = default;
};

// Experts that lie on different devices (strategies/layout/expert_layout.hpp): rows of tokens go to
// the experts that they visit and back.
struct ExpertExchange {
  // The router's weights go with them and are multiplied in before the last product
  // (Megatron-Core); false: they stay, for the sum of a token's rows.
  bool weights_travel = false;
  bool shared_first = false;  // experts that every token visits are run before the others
  // Or while rows travel: their first products on the way to the others, their last on the way back
  // (Megatron-Core's moe_shared_expert_overlap).
  bool shared_beside = false;
  // In which routers compute, and their weights travel; nothing: as the model's own class does
  // (Megatron-Core's moe_router_dtype).
  std::optional<DType> router_dtype{};
  // Tokens that are split along the sequence stay so up to the exchange.
  bool splits_sequence = false;
  // Rows that an expert gets, over those of an even routing: of the busiest, or with padding.
  double rows = 1;
  std::map<std::int32_t, ExpertRows> rows_of_layer{};  // or of layers by their number
  friend bool operator==(const ExpertExchange&, const ExpertExchange&) = default;
};

// Of a step of inference: what layers keep of the tokens before, and behind which the sequence's
// tokens come. Only the last of these makes logits.
struct TokenCache {
  std::int64_t context = 0;      // tokens of each sequence that are there before the step
  std::int64_t places = 0;       // that there is memory for, those of the step among them
  std::int64_t block = 1;        // tokens of a page; memory is of whole pages
  std::optional<DType> dtype{};  // of keys, values and latents; nothing: that of the computation
  friend bool operator==(const TokenCache&, const TokenCache&) = default;
};

// A layer of the last stack by its number; nothing: the first of those that are most alike.
struct OneLayer {
  std::optional<std::int64_t> number{};
  friend bool operator==(const OneLayer&, const OneLayer&) = default;
};

// What of a step shapes the forward pass.
struct WorkloadOptions {
  std::int64_t batch = 1;                // sequences or images that go through the model together
  std::optional<std::int64_t> sequence;  // tokens per sequence; decoders need it, vision models
                                         // derive it from the image and refuse it
  DType compute_dtype = DType::bf16;
  std::int64_t mtp_layers = 0;  // of multi-token prediction, beside the model's own layers
  WeightTypes weights{};        // where norms and look-ups do not take them in compute_dtype
  std::optional<ExpertExchange> exchange{};
  // Latents of queries and of keys before what is made of either (Megatron-Core,
  // multi_latent_attention.py, get_query_key_value_tensors).
  bool latents_first = false;
  bool split_predictors = false;  // of multi-token prediction, eh_proj: split as other products are
  bool split_latents = false;     // what makes latents of attention is split as other products are
  std::optional<TokenCache> cache{};
  std::optional<OneLayer> one_layer{};  // that layer alone, of states that enter; no head
  bool drops = false;  // with dropout, as training does: of the model's own rates, or this one
  std::optional<double> dropout{};
  DType index_dtype = DType::i64;        // of token numbers, positions and labels; JAX has int32
  std::optional<std::int64_t> target{};  // tokens that a decoder beside an encoder reads; nothing:
                                         // as many as the encoder
  std::optional<Documents> documents{};  // that sequences are packed of; nothing: each is one
  std::optional<std::int64_t> side{};    // of a network's images; nothing: the configuration's
  Place place{};                         // of these options; without a file the model's
};

// A model's description: a Hugging Face config.json of a family that is known
// (families/families.hpp), or our own for big_vision's ViT and a classifier. `name` is a
// shipped model ("llama-3.1-8b", see shipped_models()) or a path, tried relative to `directory`.
struct ModelConfig {
  std::string name;  // file name without directory and .json
  std::string path;
  OwnedJson json;
};
[[nodiscard]] std::vector<std::string> shipped_models();
[[nodiscard]] ModelConfig load_model_config(const std::string& name, const std::string& directory,
                                            const Place& place);
// As an experiment has it: a name; a config.json written in place; or the keys in which a model
// differs from another, {"base": "llama-3.1-405b", "num_hidden_layers": 4}: of fewer layers the
// first, where the base lists what each is.
[[nodiscard]] ModelConfig load_model_config(const JsonReader& model, const std::string& directory);

// Of transformers, "mixtral"; of our own descriptions the model_type. Throws InputError for an
// unsupported architecture.
[[nodiscard]] std::string family_name(const ModelConfig& config);

// Whether the model reads tokens, so that a sequence length has to be given. Throws InputError for
// an unsupported architecture.
[[nodiscard]] bool reads_tokens(const ModelConfig& config);

// Tokens of each sequence that a prefill's decoder reads: `sequence`; beside an encoder of tokens
// `target`, where that is not said the one that starts a sequence. Throws as reads_tokens.
[[nodiscard]] std::int64_t prompt_tokens(const ModelConfig& config, std::int64_t sequence,
                                         std::optional<std::int64_t> target);
// Has it an encoder beside its decoder?
[[nodiscard]] bool has_encoder(const ModelConfig& config);

// Throws InputError: an architecture that is not known (with the nearest ones) or has a component
// without an op graph (named), unknown or missing keys of consequence, impossible sizes, a sequence
// where the model reads none or none where it does, one longer than the model's positions where it
// has a table.
[[nodiscard]] Workload build_workload(const ModelConfig& config, const WorkloadOptions& options);
// Only the first of these, and the sequence: whether the model takes what the options say.
void check_entering(const ModelConfig& config, const WorkloadOptions& options);

}  // namespace shardsim
