// From a model's description to its op graph.
//
//   WorkloadOptions options{.batch = 64, .sequence = 8192};
//   Workload w = build_workload(load_model_config("llama-3.1-8b"), options);   // forward
//   add_backward(w, {});                                                       // by rule
//   add_optimizer(w, {});                                                      // AdamW
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.hpp"
#include "base/owned_json.hpp"
#include "workloads/graph/op_graph.hpp"

namespace shardsim {

struct WorkloadOptions {
  std::int64_t batch = 1;                // global, in sequences or images per step
  std::optional<std::int64_t> sequence;  // tokens per sequence; decoders need it, vision models
                                         // derive it from the image and refuse it
  DType compute_dtype = DType::bf16;
  std::int64_t microbatches = 1;  // gradient accumulation: parts of the batch, one after another
  std::vector<std::string> metrics{};  // "loss", "accuracy": summed over the devices once a step
  std::vector<std::string> outputs{};  // of every example: output_names()
  WeightTypes weights{};               // where norms and look-ups do not take them in compute_dtype
  DType index_dtype = DType::i64;      // of token numbers, positions and labels; JAX has int32
  Place place{};                       // of these options; without a file the model's
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

// What a step can leave of every example, beside its loss and the new state:
//   logits   before the loss, in fp32                  [batch, sequence, vocabulary]
//   labels   as they entered                           [batch, sequence]
//   losses   the cross entropy of each token or image  [batch, sequence]
[[nodiscard]] std::vector<std::string> output_names();

// Whether the model reads tokens, so that a sequence length has to be given. Throws InputError for
// an unsupported architecture.
[[nodiscard]] bool reads_tokens(const ModelConfig& config);

// Throws InputError: an architecture that is not known (with the nearest ones) or has a component
// without an op graph (named), unknown or missing keys of consequence, impossible sizes, sequence
// longer than the model's positions where it has a table, a batch that the microbatches do not
// divide, an unknown output, outputs of several microbatches.
[[nodiscard]] Workload build_workload(const ModelConfig& config, const WorkloadOptions& options);

// Which forward activations the backward pass keeps; the others are computed again from what is
// kept, at the start of the block's backward pass.
struct Rematerialization {
  enum class Policy { none, full, selective, named };
  Policy policy = Policy::none;   // full: only what enters a repeated block is kept
                                  // selective: also the results of matmuls and attention
  std::vector<std::string> save;  // named: regular expressions (search) on activation names
};
// Fills Block::backward for every block. Throws InputError when a name pattern matches nothing.
void add_backward(Workload& workload, const Rematerialization& rematerialization);

struct OptimizerOptions {
  std::string kind = "adamw";                // or "sgd" (momentum)
  DType parameters = DType::bf16;            // as stored between steps
  DType gradients = DType::bf16;             // as accumulated and reduced
  std::optional<DType> master = DType::f32;  // nothing: the parameters are their own master
  DType moments = DType::f32;
  bool donate = true;  // the new train state takes the place of the old; false: it stands beside it
};
// Fills Block::optimizer: one op per parameter, in the block that uses it first. Its results are
// the parameter, its master (NAME.master) and its moments (NAME.exp_avg, NAME.exp_avg_sq; sgd:
// NAME.momentum_buffer), updated in place; its operands are these, then the gradient. The gradient
// tensor has the compute dtype, as the matmul leaves it; who reduces it casts it to `gradients`.
// Throws InputError when the kind is unknown.
void add_optimizer(Workload& workload, const OptimizerOptions& options);

}  // namespace shardsim
