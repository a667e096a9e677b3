// One step twice: Llama 3.1 8B, FSDP over 16 devices, 16 sequences of 4096 tokens, bf16, layers
// recomputed; from the model's config.json, and from the StableHLO that jax makes of it
// (tests/golden/xla_models). What a layer sends is the same. The counts are derived from the model:
// 32 layers, hidden size 4096, 1024 columns of keys and values, 14336 of the feed-forward network,
// 128256 tokens; a matrix is gathered in the forward and in the backward pass, its gradient
// scattered once.
#include <catch2/catch.hpp>
#include <map>
#include <tuple>

#include "base/index.hpp"
#include "base/json.hpp"
#include "experiments/experiment.hpp"
#include "experiments/program.hpp"
#include "tests/base/golden_files.hpp"

namespace shardsim::test {
namespace {

using Kind = CollectiveKind;
using Counts = std::map<std::tuple<Kind, DType, std::int64_t>, int>;

Counts collectives_of(const Plan& plan) {
  Counts counts;
  for (const Task& task : plan.programs.at(0).tasks) {
    if (task.kind != TaskKind::collective) continue;
    const Collective& one = plan.collectives[at(task.work)];
    REQUIRE(one.axes.size() == 1);
    ++counts[{one.kind, one.dtype, one.payload.count()}];
  }
  return counts;
}

Plan from_program() {
  const auto path = plain_or_gzip(golden_folder("xla_models") / "programs" /
                                  "llama3-8b-train-fsdp-16-v5p-16-b16-s4096-bf16m-rfull.mlir");
  REQUIRE(path);
  ProgramOptions options;
  options.like_xla = true;
  return program_plan(*path, options);
}

// As a JAX program does it: each tensor on its own, norms whole, the output head gathered once.
Plan from_config() {
  const Json document = Json::parse(R"({
    "workload": {"model": "llama-3.1-8b", "batch": 16, "sequence": 4096},
    "mesh": "data=16",
    "strategy": {"name": "fsdp", "gather": "tensor", "reshard_root_after_forward": false,
                 "rules": [{"pattern": "norm", "spec": []}]}})");
  return compile_experiment(read_experiments(document, "test.json").at(0)).plan;
}

constexpr std::int64_t hidden = 4096;
constexpr std::int64_t tokens = std::int64_t{16} * 4096;
constexpr std::int64_t head = 128256 * hidden * 2;  // bytes of embedding and of output head
constexpr int layers = 32;
constexpr int norms = 2 * layers + 1;

// Takes the layers' matrices out.
void take_layers(Counts& counts) {
  const std::map<std::int64_t, int> matrices{{1024 * hidden * 2, 2},    // k, v
                                             {hidden * hidden * 2, 2},  // q, o
                                             {14336 * hidden * 2, 3}};  // gate, up, down
  for (const auto& [bytes, number] : matrices) {
    INFO(bytes << " bytes");
    CHECK(counts[{Kind::all_gather, DType::bf16, bytes}] == 2 * number * layers);
    CHECK(counts[{Kind::reduce_scatter, DType::bf16, bytes}] == number * layers);
    counts.erase({Kind::all_gather, DType::bf16, bytes});
    counts.erase({Kind::reduce_scatter, DType::bf16, bytes});
  }
}

}  // namespace

TEST_CASE("the layers of Llama 3.1 8B send the same from config.json and from StableHLO") {
  Counts program = collectives_of(from_program());
  Counts config = collectives_of(from_config());
  take_layers(program);
  take_layers(config);

  // XLA looks tokens up in the shards of the embedding: it gathers their numbers, adds what each
  // device found, and gathers the gradients to add them to the shards.
  const Counts lookup{{{Kind::all_gather, DType::i32, tokens * 4}, 1},
                      {{Kind::reduce_scatter, DType::bf16, tokens * hidden * 2}, 1},
                      {{Kind::all_gather, DType::bf16, tokens * hidden * 2}, 1}};
  Counts expected = lookup;
  expected[{Kind::all_gather, DType::bf16, head}] = 1;
  expected[{Kind::reduce_scatter, DType::bf16, head}] = 1;
  expected[{Kind::all_reduce, DType::f32, hidden * 4}] = norms;  // summed before they are cast
  expected[{Kind::all_reduce, DType::f32, 4}] = 1;               // the loss
  CHECK(program == expected);

  // The strategy gathers the embedding as it gathers every unit, and sums gradients in the type of
  // the parameters; the step has no metrics.
  CHECK(config == Counts{{{Kind::all_gather, DType::bf16, head}, 2},
                         {{Kind::reduce_scatter, DType::bf16, head}, 2},
                         {{Kind::all_reduce, DType::bf16, hidden * 2}, norms}});
}

}  // namespace shardsim::test
