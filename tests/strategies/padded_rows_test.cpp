// Copies of experts' rows before and behind products of few bits.
#include "strategies/compile/padded_rows.hpp"

#include <catch2/catch.hpp>

#include "base/json.hpp"
#include "model_step.hpp"

namespace shardsim {
namespace {

constexpr std::int64_t rows_of_device = 4096 * 2;  // of a device, each token of which visits two
constexpr std::int64_t numbers_of_row = 4096;

struct RowCopies {
  int count = 0;
  std::int64_t bytes = 0;
};

RowCopies row_copies_of(const std::string& dispatch, ProductFormat format, Phase phase) {
  const Mesh mesh({{"dp", 8}});
  const Json config = {{"base", "mixtral-8x7b"}, {"num_hidden_layers", 2}};
  const Json json = {{"name", "megatron"},
                     {"kernels", "transformer-engine"},
                     {"experts", {{"parallel", 4}, {"dispatch", dispatch}}}};
  const Strategy strategy = read_strategy(JsonReader(json, {"strategy", ""}), mesh);
  Step step{.batch = 8, .sequence = 4096};
  step.precision.products.format = format;
  step.exchange = strategy.experts->exchange;
  const Workload workload =
      build_step(load_model_config(JsonReader(config, {"model", ""}), ""), step);
  const Plan plan = compile(workload, step, mesh, strategy).plan;
  RowCopies copies;
  for (const Task& task : plan.programs[0].tasks) {
    if (task.kind != TaskKind::kernel || task.phase != phase || task.layer != 1) continue;
    const Kernel& kernel = plan.kernels[static_cast<std::size_t>(task.work)];
    const std::string& name = plan.names[static_cast<std::size_t>(task.name)];
    if (kernel.op != "copy" || !name.ends_with(" padding")) continue;
    ++copies.count;
    copies.bytes += kernel.bytes.count();
  }
  return copies;
}

}  // namespace

// Megatron-Core 0.16, TEGroupedMLP: quantization_padding before fc1, quantization_unpadding behind
// fc2, each a copy of all rows in bf16; in the backward pass of their gradients.
TEST_CASE("rows of experts are padded before products of 8 bits and cut behind them") {
  for (const Phase phase : {Phase::forward, Phase::backward}) {
    for (const char* dispatch : {"all-to-all", "deepep"}) {
      const RowCopies copies = row_copies_of(dispatch, ProductFormat::fp8, phase);
      CHECK(copies.count == 2);
      CHECK(copies.bytes == 2 * 2 * 2 * rows_of_device * numbers_of_row);
    }
  }
}

// Its permutation pads ("pad_multiple"); 16 bits need nothing.
TEST_CASE("HybridEP pads by itself, products of 16 bits are not padded") {
  for (const Phase phase : {Phase::forward, Phase::backward}) {
    CHECK(row_copies_of("hybridep", ProductFormat::fp8, phase).count == 0);
    CHECK(row_copies_of("deepep", ProductFormat::none, phase).count == 0);
  }
}

}  // namespace shardsim
