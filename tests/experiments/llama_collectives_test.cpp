// One step twice: from the model's config.json, and from the StableHLO that jax makes of it
// (tests/golden/xla_models). Both send the same: every collective of the step, in kind, type, bytes
// and number. What the first is expected to be is derived from the model below.
#include <catch2/catch.hpp>
#include <map>
#include <string>
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

Counts from_program(const std::string& id) {
  const auto path = plain_or_gzip(golden_folder("xla_models") / "programs" / (id + ".mlir.gz"));
  REQUIRE(path);
  ProgramOptions options;
  options.like_xla = true;
  return collectives_of(program_plan(*path, options));
}

// As the JAX programs do it: norms in fp32, 32-bit token numbers, each tensor on its own, the
// output head gathered once, the loss averaged.
Counts from_config(const std::string& workload, int devices, const std::string& strategy) {
  Json document = Json::parse(R"({
    "workload": {"precision": {"norms": "fp32", "indices": "int32"}},
    "strategy": {"gather": "tensor", "reshard_root_after_forward": false, "reduce_loss": true}})");
  document["workload"].merge_patch(Json::parse(workload));
  document["strategy"].merge_patch(Json::parse(strategy));
  document["mesh"]["data"] = devices;
  const std::string file = SHARDSIM_SOURCE_DIR "/tests/experiments/test.json";
  return collectives_of(compile_experiment(read_experiments(document, file).at(0)).plan);
}

// The largest dimension of every matrix is split, norms are whole; with the embedding gathered, or
// left in its shards.
const std::string gathered = R"({"name": "fsdp", "shard_dimension": "largest",
                                 "rules": [{"pattern": "norm", "spec": []}]})";
const std::string in_shards = R"({"name": "fsdp", "shard_dimension": "largest",
                                  "gather_embedding": false,
                                  "rules": [{"pattern": "norm", "spec": []}]})";

}  // namespace

// 32 layers, hidden size 4096, 1024 columns of keys and values, 14336 of the feed-forward network,
// 128256 tokens; a matrix is gathered in the forward and in the backward pass, its gradient
// scattered once.
TEST_CASE("Llama 3.1 8B under FSDP sends the same from config.json and from StableHLO") {
  constexpr std::int64_t hidden = 4096;
  constexpr std::int64_t tokens = std::int64_t{16} * 4096;
  constexpr std::int64_t head = 128256 * hidden * 2;  // bytes
  constexpr int layers = 32;
  const Counts program = from_program("llama3-8b-train-fsdp-16-v5p-16-b16-s4096-bf16m-rfull");
  const Counts config = from_config(R"({"model": "llama-3.1-8b", "batch": 16, "sequence": 4096,
                                        "rematerialization": "full"})",
                                    16, in_shards);
  Counts expected;
  const std::map<std::int64_t, int> matrices{{1024 * hidden * 2, 2},    // k, v
                                             {hidden * hidden * 2, 2},  // q, o
                                             {14336 * hidden * 2, 3}};  // gate, up, down
  for (const auto& [bytes, number] : matrices) {
    expected[{Kind::all_gather, DType::bf16, bytes}] = 2 * number * layers;
    expected[{Kind::reduce_scatter, DType::bf16, bytes}] = number * layers;
  }
  expected[{Kind::all_gather, DType::bf16, head}] = 1;
  expected[{Kind::reduce_scatter, DType::bf16, head}] = 1;
  // Tokens are looked up in the shards of the embedding: their numbers are gathered, what each
  // device found is added up, the gradients are gathered to be added to the shards.
  expected[{Kind::all_gather, DType::i32, tokens * 4}] = 1;
  expected[{Kind::reduce_scatter, DType::bf16, tokens * hidden * 2}] = 1;
  expected[{Kind::all_gather, DType::bf16, tokens * hidden * 2}] = 1;
  // Two norms a layer and the last one, their gradients summed before they are cast; the loss.
  expected[{Kind::all_reduce, DType::f32, hidden * 4}] = 2 * layers + 1;
  expected[{Kind::all_reduce, DType::f32, 4}] = 1;
  CHECK(program == expected);
  CHECK(program == config);
}

// XLA looks up in shards where a step has fewer tokens than the table has rows, and gathers the
// table where it has more.
TEST_CASE("other models, meshes and policies send the same from both") {
  struct Row {
    const char* program;
    const char* workload;
    int devices;
    const std::string& strategy;
  };
  const Row row =
      GENERATE(Row{"llama3-8b-train-fsdp-8-h100-8-b8-s4096-bf16m-rnone",
                   R"({"model": "llama-3.1-8b", "batch": 8, "sequence": 4096})", 8, in_shards},
               // 32 x 4096 tokens are more than 128256.
               Row{"llama3-8b-train-fsdp-32-v5p-32-b32-s4096-bf16m-rfull",
                   R"({"model": "llama-3.1-8b", "batch": 32, "sequence": 4096,
              "rematerialization": "full"})",
                   32, gathered},
               // Four microbatches of 8 x 4096 tokens.
               Row{"llama3-8b-train-fsdp-8-h100-8-b32-s4096-bf16m-rfull-acc4",
                   R"({"model": "llama-3.1-8b", "batch": 32, "sequence": 4096, "microbatches": 4,
              "rematerialization": "full"})",
                   8, in_shards},
               Row{"llama3-70b-train-fsdp-64-h100-64-b64-s4096-bf16m-rfull",
                   R"({"model": "llama-3.1-70b", "batch": 64, "sequence": 4096,
              "rematerialization": "full"})",
                   64, gathered},
               // Tied: the head gathers the table in which tokens are looked up in shards; 32 x
               // 4096 tokens are fewer than 151936.
               Row{"qwen3-0_6b-train-fsdp-8-v6e-8-b32-s4096-bf16m-rdots",
                   R"({"model": "qwen3-0.6b.json", "batch": 32, "sequence": 4096,
              "rematerialization": "selective"})",
                   8, in_shards});
  INFO(row.program);
  CHECK(from_program(row.program) == from_config(row.workload, row.devices, row.strategy));
}

// Parameters in fp32: tokens are looked up in the table as it is stored and the rows cast; the head
// multiplies with the cast table. Of a tied table XLA sums the two gradients apart.
const std::string fp32 = R"({"norms": "fp32", "indices": "int32", "look_ups": "fp32",
                             "parameters": "fp32", "master": "none"})";

TEST_CASE("programs with fp32 parameters send the same from both") {
  CHECK(from_program("llama3-8b-train-fsdp-32-v5p-32-b32-s4096-fp32-rfull") ==
        from_config(R"({"model": "llama-3.1-8b", "batch": 32, "sequence": 4096,
                        "rematerialization": "full", "precision": )" +
                        fp32 + "}",
                    32, gathered));
  CHECK(from_program("qwen3-1_7b-train-fsdp-16-v5e-16-b16-s2048-fp32-rfull") ==
        from_config(R"({"model": "qwen3-1.7b", "batch": 16, "sequence": 2048,
                        "rematerialization": "full", "precision": )" +
                        fp32 + "}",
                    16, in_shards));
}

TEST_CASE("data parallelism sends the same from both") {
  CHECK(from_program("vit-b-16-train-dp-8-v6e-8-b4096-s196-bf16m-rnone") ==
        from_config(R"({"model": "vit-b16", "batch": 4096})", 8, R"({"name": "dp"})"));
  const Counts qwen = from_config(R"({"model": "qwen3-1.7b", "batch": 16, "sequence": 2048,
                                      "rematerialization": "full", "precision": )" +
                                      fp32 + "}",
                                  16, R"({"name": "dp"})");
  CHECK(from_program("qwen3-1_7b-train-dp-16-v5e-16-b16-s2048-fp32-rfull") == qwen);
  const std::int64_t table = std::int64_t{151936} * 2048;
  CHECK(qwen.at({Kind::all_reduce, DType::bf16, table * 2}) == 1);  // of the head
  CHECK(qwen.at({Kind::all_reduce, DType::f32, table * 4}) == 1);   // of the look-up
}

}  // namespace shardsim::test
