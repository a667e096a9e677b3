#include "workloads/step/step.hpp"

#include <fmt/format.h>

#include "workloads/step/backward.hpp"
#include "workloads/step/narrow_products.hpp"
#include "workloads/step/outputs.hpp"
#include "workloads/step/shared_parameters.hpp"
#include "workloads/step/trainable.hpp"
#include "workloads/views/view.hpp"

namespace shardsim {

namespace {

// Weights of products are read as they are stored.
void store_products(Workload& workload, DType dtype, DType compute) {
  for (Block& block : workload.blocks) {
    for (Op& op : block.forward) {
      const bool is_product = kind_of(op) == OpKind::einsum && op.operands.size() > 1 &&
                              (op.part != OpPart::none || op.module == OpModule::mixer);
      if (!is_product) continue;
      Tensor& weight = workload.tensors[static_cast<std::size_t>(op.operands[1].tensor)];
      if (weight.role != TensorRole::parameter) continue;
      weight.dtype = dtype;
      weight.stored_as_read = true;
      op.multiplied_in = compute;
    }
  }
}

// Of a decoder beside an encoder the tokens are the target's, those of the encoder `sequence`.
void set_cache(const ModelConfig& config, const Step& step, WorkloadOptions& options) {
  const bool decodes = step.kind == StepKind::decode;
  const bool encodes = has_encoder(config);
  if (decodes && encodes && !step.sequence) {
    throw InputError(options.place,
                     "\"step\": \"decode\" of a model with an encoder needs \"sequence\": the "
                     "tokens whose keys and values the encoder has left");
  }
  if (!step.sequence && !decodes) return;  // check_entering says so
  const std::int64_t tokens =
      decodes ? 1 : prompt_tokens(config, *step.sequence, step.target_sequence);
  if (encodes) {
    options.target = tokens;
  } else {
    options.sequence = tokens;
  }
  options.cache = TokenCache{.context = step.context,
                             .places = step.context + tokens + step.generate,
                             .block = step.block_size,
                             .dtype = step.precision.kv_cache};
}

WorkloadOptions options_of(const ModelConfig& config, const Step& step, const Place& place) {
  WorkloadOptions options{.batch = step.batch,
                          .sequence = step.sequence,
                          .compute_dtype = step.precision.compute,
                          .mtp_layers = step.mtp_layers,
                          .weights = step.precision.weights,
                          .exchange = step.exchange,
                          .latents_first = step.latents_first,
                          .split_predictors = step.split_predictors,
                          .split_latents = step.split_latents,
                          .cache = {},
                          .drops = has_gradients(step),
                          .dropout = step.dropout,
                          .index_dtype = step.precision.indices,
                          .target = step.target_sequence,
                          .documents = step.documents,
                          .place = place};
  if (step.kind == StepKind::layer) options.one_layer = step.layer;
  if (is_inference(step.kind)) set_cache(config, step, options);
  return options;
}

}  // namespace

std::string_view name_of(StepKind kind) {
  switch (kind) {
    case StepKind::train:
      return "train";
    case StepKind::forward:
      return "forward";
    case StepKind::prefill:
      return "prefill";
    case StepKind::decode:
      return "decode";
    case StepKind::generate:
      return "generate";
    case StepKind::layer:
      return "layer";
  }
  return "";
}

bool is_inference(StepKind kind) {
  return kind == StepKind::prefill || kind == StepKind::decode || kind == StepKind::generate;
}

bool has_gradients(const Step& step) {
  return step.kind == StepKind::train || (step.kind == StepKind::layer && step.layer_backward);
}

Step prefill_of(const Step& step) {
  Step first = step;
  first.kind = StepKind::prefill;
  return first;
}

// The i-th of n - 1 has prompt + i tokens before it.
Step decode_of(const Step& step, std::int64_t prompt) {
  Step next = step;
  next.kind = StepKind::decode;
  next.context = prompt + (step.generate - 2) / 2;
  next.generate = prompt + step.generate - next.context - 1;
  next.target_sequence.reset();
  return next;
}

std::string_view name_of(ProductFormat format) {
  switch (format) {
    case ProductFormat::none:
      return "none";
    case ProductFormat::fp8:
      return "fp8";
    case ProductFormat::mxfp8:
      return "mxfp8";
    case ProductFormat::nvfp4:
      return "nvfp4";
    case ProductFormat::int8:
      return "int8";
  }
  return "";
}

std::optional<DType> dtype_of(ProductFormat format) {
  switch (format) {
    case ProductFormat::none:
      return std::nullopt;
    case ProductFormat::fp8:
    case ProductFormat::mxfp8:
      return DType::f8;
    case ProductFormat::nvfp4:
      return DType::f4_e2m1;
    case ProductFormat::int8:
      return DType::i8;
  }
  return std::nullopt;
}

std::vector<std::string> warnings_of(const Step& step) {
  std::vector<std::string> warnings;
  const NarrowProducts& products = step.precision.products;
  if (step.precision.stored_products) {
    warnings.push_back(
        fmt::format("weights of products are read in {}; what turns them into {} is "
                    "of the product's kernel and takes no time",
                    name_of(*step.precision.stored_products), name_of(step.precision.compute)));
  }
  if (products.format != ProductFormat::none) {
    warnings.push_back(
        fmt::format("products of layers run at the peak of {}; casting their operands{} takes "
                    "time only where the strategy's kernels say what does it, and what "
                    "the backward pass reads of them is kept in {}: not modelled yet",
                    name_of(*dtype_of(products.format)),
                    products.scaling.empty() ? "" : fmt::format(" ({} scaling)", products.scaling),
                    name_of(step.precision.compute)));
  }
  return warnings;
}

Workload build_step(const ModelConfig& config, const Step& step, const Place& place,
                    SharedParameters shared, const std::vector<std::size_t>& chunks) {
  WorkloadOptions part = options_of(config, step, place);
  check_entering(config, part);
  if (step.batch % step.microbatches != 0) {
    throw InputError(place.file.empty() ? Place{config.path, ""}
                                        : Place{place.file, place.pointer + "/microbatches"},
                     fmt::format("a batch of {} does not divide into {} microbatches", step.batch,
                                 step.microbatches));
  }
  if (step.mtp_layers > 0 && !reads_tokens(config)) {
    throw InputError({place.file, place.pointer + "/mtp_layers"},
                     "multi-token prediction is of language models");
  }
  part.batch = step.batch / step.microbatches;
  Workload workload = build_workload(config, part);
  if (!step.view.empty()) {
    const Place at{place.file, place.pointer + "/view"};
    if (step.lora) throw InputError(at, "adapters have no names in a view: leave \"lora\" out");
    apply_view(workload, step.view, family_name(config), at);
  }
  std::vector<std::string> trained = step.trainable;
  if (step.lora) {
    add_adapters(workload, *step.lora, {place.file, place.pointer + "/lora"});
    trained.emplace_back(adapter_names);
  }
  if (!trained.empty()) {
    train_only(workload, trained, {place.file, place.pointer + "/trainable"});
  }
  narrow_products(workload, step.precision.products);
  if (step.precision.stored_products) {
    store_products(workload, *step.precision.stored_products, step.precision.compute);
  }
  if (shared == SharedParameters::copies) copy_shared_parameters(workload);
  const Place outputs{place.file, place.pointer + "/outputs"};
  if (!step.outputs.empty() && step.microbatches > 1) {
    throw InputError(outputs, "outputs of a step of several microbatches are not supported");
  }
  if (!step.outputs.empty() && step.mtp_layers > 0) {
    throw InputError(outputs, "outputs of a step with multi-token prediction are not supported");
  }
  add_outputs(workload, step.outputs, outputs);
  if (has_gradients(step)) {
    add_backward(workload, step.rematerialization, chunks);
    add_optimizer(workload, step.optimizer);
  }
  return workload;
}

}  // namespace shardsim
