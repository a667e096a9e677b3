#include "workloads/step/step.hpp"

#include <fmt/format.h>

#include "workloads/step/backward.hpp"
#include "workloads/step/narrow_products.hpp"
#include "workloads/step/outputs.hpp"
#include "workloads/step/shared_parameters.hpp"
#include "workloads/step/trainable.hpp"

namespace shardsim {

std::string_view name_of(StepKind kind) { return kind == StepKind::train ? "train" : "forward"; }

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
  const bool trains = step.kind == StepKind::train;
  if (products.format != ProductFormat::none) {
    warnings.push_back(
        fmt::format("products of layers run at the peak of {}; casting their operands{} takes no "
                    "time, and what "
                    "the backward pass reads of them is kept in {}: not modelled yet",
                    name_of(*dtype_of(products.format)),
                    products.scaling.empty() ? "" : fmt::format(" ({} scaling)", products.scaling),
                    name_of(step.precision.compute)));
  }
  if (trains && step.dropout > 0) {
    warnings.push_back(fmt::format("dropout of {} is left out: not modelled yet", step.dropout));
  }
  return warnings;
}

Workload build_step(const ModelConfig& config, const Step& step, const Place& place,
                    SharedParameters shared, const std::vector<std::size_t>& chunks) {
  WorkloadOptions part{.batch = step.batch,
                       .sequence = step.sequence,
                       .compute_dtype = step.precision.compute,
                       .mtp_layers = step.mtp_layers,
                       .weights = step.precision.weights,
                       .exchange = step.exchange,
                       .index_dtype = step.precision.indices,
                       .place = place};
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
  std::vector<std::string> trained = step.trainable;
  if (step.lora) {
    add_adapters(workload, *step.lora, {place.file, place.pointer + "/lora"});
    trained.emplace_back(adapter_names);
  }
  if (!trained.empty()) {
    train_only(workload, trained, {place.file, place.pointer + "/trainable"});
  }
  narrow_products(workload, step.precision.products);
  if (shared == SharedParameters::copies) copy_shared_parameters(workload);
  const Place outputs{place.file, place.pointer + "/outputs"};
  if (!step.outputs.empty() && step.microbatches > 1) {
    throw InputError(outputs, "outputs of a step of several microbatches are not supported");
  }
  if (!step.outputs.empty() && step.mtp_layers > 0) {
    throw InputError(outputs, "outputs of a step with multi-token prediction are not supported");
  }
  add_outputs(workload, step.outputs, outputs);
  if (step.kind == StepKind::train) {
    add_backward(workload, step.rematerialization, chunks);
    add_optimizer(workload, step.optimizer);
  }
  return workload;
}

}  // namespace shardsim
