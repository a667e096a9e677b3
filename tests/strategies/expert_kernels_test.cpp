// What Megatron has Transformer Engine launch for each expert: biases, clamps, casts.
#include <catch2/catch.hpp>
#include <string>

#include "base/json.hpp"
#include "model_step.hpp"
#include "strategies/compile/expert_biases.hpp"

namespace shardsim {
namespace {

constexpr std::int64_t rows_of_experts = 4096 * 4;  // of a device, each token of which visits four

struct KernelsNamed {
  int count = 0;
  std::int64_t bytes = 0;
  std::int32_t launches = 0;
};

// Of the second of two layers.
template <class IsMeant>
KernelsNamed kernels_of(const Json& config, const NarrowProducts& products, Phase phase,
                        const IsMeant& is_meant) {
  const Mesh mesh({{"dp", 8}});
  const Json json = {{"name", "megatron"},
                     {"kernels", "transformer-engine"},
                     {"experts", {{"parallel", 8}, {"dispatch", "all-to-all"}}}};
  const Strategy strategy = read_strategy(JsonReader(json, {"strategy", ""}), mesh);
  Step step{.batch = 8, .sequence = 4096};
  step.precision.products = products;
  step.exchange = strategy.experts->exchange;
  const Workload workload =
      build_step(load_model_config(JsonReader(config, {"model", ""}), ""), step);
  const Plan plan = compile(workload, step, mesh, strategy).plan;
  KernelsNamed found;
  for (const Task& task : plan.programs[0].tasks) {
    if (task.kind != TaskKind::kernel || task.phase != phase || task.layer != 1) continue;
    const Kernel& kernel = plan.kernels[static_cast<std::size_t>(task.work)];
    if (!is_meant(kernel, plan.names[static_cast<std::size_t>(task.name)])) continue;
    ++found.count;
    found.bytes += kernel.bytes.count();
    found.launches += kernel.launches;
  }
  return found;
}

KernelsNamed kernels_named(Phase phase, const std::string& op, const std::string& end) {
  const Json gpt_oss = {{"base", "gpt-oss-120b"}, {"num_hidden_layers", 2}};
  return kernels_of(gpt_oss, {}, phase, [&](const Kernel& kernel, const std::string& name) {
    return kernel.op == op && name.ends_with(end);
  });
}

std::int32_t launches_of_casts(ProductFormat format, const std::string& scaling) {
  const Json mixtral = {
      {"base", "mixtral-8x7b"}, {"num_hidden_layers", 2}, {"num_local_experts", 32}};
  NarrowProducts products{.format = format};
  products.scaling = scaling;
  return kernels_of(mixtral, products, Phase::forward,
                    [](const Kernel& kernel, const std::string& name) {
                      return kernel.op == "cast" && name.find("experts") != std::string::npos;
                    })
      .launches;
}

}  // namespace

// Megatron-Core 0.16.1: weighted_bias_quick_geglu_impl clamps both halves and joins them, 4 and 4
// bytes of each of 2 x 2880 numbers; TEGroupedMLP._apply_bias multiplies, adds and joins, 2, 6 and
// 4 of each of 2880. Backward 10 and 14.
TEST_CASE("experts with biases are clamped and get their last bias in kernels of their own") {
  const std::int64_t numbers = rows_of_experts * 2880;
  const KernelsNamed clamp = kernels_named(Phase::forward, "copy", " clamp");
  CHECK(clamp.count == 1);
  CHECK(clamp.bytes == 8 * 2 * numbers);
  const KernelsNamed bias = kernels_named(Phase::forward, "copy", "down_proj bias");
  CHECK(bias.count == 1);
  CHECK(bias.bytes == 12 * numbers);
  CHECK(kernels_named(Phase::backward, "copy", " clamp").bytes == 10 * 2 * numbers);
  CHECK(kernels_named(Phase::backward, "copy", " clamp").count == 1);
  CHECK(kernels_named(Phase::backward, "sum", "experts.down_proj").bytes == 14 * numbers);
  CHECK(kernels_named(Phase::backward, "copy", "down_proj bias").count == 0);
}

// Transformer Engine's multi_tensor_quantize_impl has one kernel for all under delayed scaling;
// else each of the device's 4 experts has its own, before both products: four under "tensorwise".
TEST_CASE("rows of experts are quantized expert by expert but under delayed scaling") {
  CHECK(launches_of_casts(ProductFormat::fp8, "delayed") == 2);
  CHECK(launches_of_casts(ProductFormat::fp8, "") == 2);
  CHECK(launches_of_casts(ProductFormat::fp8, "tensorwise") == 2 * 4 * 4);
  CHECK(launches_of_casts(ProductFormat::fp8, "blockwise") == 2 * 4);
  CHECK(launches_of_casts(ProductFormat::mxfp8, "") == 2 * 4);
}

}  // namespace shardsim
