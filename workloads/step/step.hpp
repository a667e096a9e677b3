// One step as a value: what is done with a model, on how much, in which types. The model says what
// is computed, the step what of it, how often, and what is kept.
//
//   Step step{.batch = 64, .sequence = 8192, .microbatches = 4};
//   Workload w = build_step(load_model_config("llama-3.1-8b", "", {}), step);
//   // the graph of one microbatch of 16 sequences, forward, backward and AdamW
//
// Two steps that compare equal are the same step of any model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "workloads/models/build.hpp"
#include "workloads/step/lora.hpp"
#include "workloads/step/optimizer.hpp"
#include "workloads/step/rematerialization.hpp"

namespace shardsim {

enum class StepKind : std::uint8_t {
  train,
  forward,   // no gradients, no optimizer
  prefill,   // a prompt, whose keys and values are kept
  decode,    // one token of each sequence, behind those that are kept
  generate,  // a prefill, then decoding step by step
  layer      // of one layer alone, of states that are there; no optimizer
};
[[nodiscard]] std::string_view name_of(StepKind kind);  // "train"

// A format that linear layers cast their operands to before they multiply them.
enum class ProductFormat : std::uint8_t { none, fp8, mxfp8, nvfp4, int8 };
[[nodiscard]] std::string_view name_of(ProductFormat format);       // "mxfp8"; "none"
[[nodiscard]] std::optional<DType> dtype_of(ProductFormat format);  // whose peak they run at

// Products of layers in a narrow format (narrow_products.hpp). How they are scaled is kept as it
// was said, and acts where a stack reads experts' rows twice (kernel_lists.cpp, add_cast).
struct NarrowProducts {
  ProductFormat format = ProductFormat::none;
  std::string scaling{};        // "delayed", "tensorwise", "rowwise", "blockwise"; empty: not said
  bool attention = false;       // attention in fp8, too
  bool gathered = false;        // parameters of products travel in fp8
  std::int64_t first_wide = 0;  // so many layers at either end keep the compute dtype
  std::int64_t last_wide = 0;
  friend bool operator==(const NarrowProducts&, const NarrowProducts&) = default;
};

// What is computed in which type; what is kept between steps has types of its own
// (OptimizerOptions).
struct Precision {
  DType compute = DType::bf16;
  WeightTypes weights{};       // where norms and look-ups do not take them in the compute dtype
  DType indices = DType::i64;  // of token numbers, positions and labels; JAX has int32
  NarrowProducts products{};
  // Of a step without gradients: weights of products are stored so and read so, beside the others.
  std::optional<DType> stored_products{};
  std::optional<DType> kv_cache{};  // nothing: the compute type
  friend bool operator==(const Precision&, const Precision&) = default;
};

struct Step {
  StepKind kind = StepKind::train;
  std::int64_t batch = 1;                  // global, in sequences or images, of all microbatches
  std::optional<std::int64_t> sequence{};  // tokens per sequence, of models that read tokens
  std::optional<std::int64_t>
      target_sequence{};                 // of a decoder beside an encoder; nothing: as many
  std::optional<Documents> documents{};  // that sequences are packed of; nothing: each is one
  std::int64_t context = 0;              // tokens that are kept before the step, of decode
  std::int64_t generate = 0;             // tokens that are made of each sequence, of generate
  std::int64_t block_size = 1;           // tokens of a page of the cache
  std::int64_t mtp_layers = 0;           // of multi-token prediction that are run
  std::int64_t microbatches = 1;  // gradient accumulation: parts of the batch, one after another
  std::vector<std::string> metrics{};  // "loss", "accuracy": summed over the devices once a step
  std::vector<std::string> outputs{};  // of every example: output_names()
  Precision precision{};
  OneLayer layer{};                // of StepKind::layer
  bool layer_backward = true;      // and whether its backward pass follows
  bool gradient_clipping = false;  // by the norm of all gradients
  OptimizerOptions optimizer{};    // of a forward step the type of its parameters alone
  Rematerialization rematerialization{};
  std::vector<std::string> trainable{};  // regular expressions on parameters; empty: all
  std::optional<Lora> lora{};
  std::string view{};  // under which rule systems see the parameters (views/view.hpp); empty: as
                       // they are
  std::optional<double> dropout{};           // of training; nothing: the model's own rates
  std::optional<ExpertExchange> exchange{};  // what the strategy makes of mixtures of experts
  bool latents_first = false;                // of latents (models/build.hpp)
  bool split_predictors = false;             // of multi-token prediction
  bool split_latents = false;                // and of latents
  friend bool operator==(const Step&, const Step&) = default;
};

// Has it a cache of keys and values?
[[nodiscard]] bool is_inference(StepKind kind);
// Does it make gradients?
[[nodiscard]] bool has_gradients(const Step& step);
// What a step of Kind::generate does first, and then for each further token: a decoding step behind
// as many tokens as there are on average, of a `prompt` of so many (prompt_tokens). The prefill
// makes the first token.
[[nodiscard]] Step prefill_of(const Step& step);
[[nodiscard]] Step decode_of(const Step& step, std::int64_t prompt);

// What of a step is not modelled, for its reader.
[[nodiscard]] std::vector<std::string> warnings_of(const Step& step);

// A parameter that more than one block reads.
enum class SharedParameters : std::uint8_t {
  one,
  copies  // in each of the blocks (shared_parameters.hpp)
};

// The step's graph: the forward pass of one microbatch, and where the step trains its backward pass
// and the optimizer. `place`: where the step is written; without a file errors name the model's.
// `chunks` of a pipeline as add_backward takes them.
// Throws InputError as build_workload, add_outputs, add_backward and add_optimizer do, for a batch
// that the microbatches do not divide, and for outputs of several microbatches.
[[nodiscard]] Workload build_step(const ModelConfig& config, const Step& step,
                                  const Place& place = {},
                                  SharedParameters shared = SharedParameters::one,
                                  const std::vector<std::size_t>& chunks = {});

}  // namespace shardsim
