// Steps of every framework on eight processes, through MPI to their end: group and size of each
// call agree on all sides, or MPI fails or never ends. Nothing here is a claim about speed.
#include <catch2/catch.hpp>
#include <fstream>
#include <string>

#include "base/json.hpp"
#include "mpi_jobs.hpp"

namespace shardsim {
namespace {

Json llama() {
  return {{"base", "llama-3.2-1b"},   {"hidden_size", 64},        {"intermediate_size", 128},
          {"num_attention_heads", 8}, {"num_key_value_heads", 8}, {"head_dim", 8},
          {"num_hidden_layers", 4},   {"vocab_size", 256},        {"tie_word_embeddings", false}};
}

Json mixtral() {
  return {{"base", "mixtral-8x7b"},   {"hidden_size", 64},        {"intermediate_size", 64},
          {"num_attention_heads", 8}, {"num_key_value_heads", 8}, {"num_hidden_layers", 2},
          {"vocab_size", 256}};
}

Json mamba() {
  return {{"architectures", {"Mamba2ForCausalLM"}},
          {"model_type", "mamba2"},
          {"hidden_size", 64},
          {"num_hidden_layers", 2},
          {"num_heads", 8},
          {"head_dim", 16},
          {"n_groups", 2},
          {"state_size", 16},
          {"vocab_size", 256}};
}

Json experiment(const Json& model, const Json& mesh, const Json& strategy, int microbatches = 1) {
  return {{"workload",
           {{"model", model}, {"batch", 8}, {"microbatches", microbatches}, {"sequence", 32}}},
          {"mesh", mesh},
          {"strategy", strategy},
          {"machine", "dgx-h100"}};
}

// Its communication: messages and collectives.
Json run_on_eight(const Json& experiment) {
  const std::string file = (test::scratch() / "step.json").string();
  std::ofstream(file) << experiment.dump();
  CAPTURE(experiment.dump());
  const test::Job job = test::validate(8, file + " --format json");
  INFO(job.errors);
  REQUIRE(job.exit == 0);
  const Json json = parse_json(job.out, "validation");
  CHECK(json["backend"]["processes"] == 8);
  CHECK(json["communication"]["tasks"].get<int>() > 0);
  return json;
}

bool has_task(const Json& validation, const std::string& kind) {
  for (const Json& task : validation["tasks"]) {
    if (task["kind"] == kind) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("two stages, two data-parallel, two tensor-parallel") {
  const Json mesh = {{"pp", 2}, {"dp", 2}, {"tp", 2}};
  const Json megatron = {{"name", "megatron"}, {"sequence_parallel", true}};
  const Json done = run_on_eight(experiment(llama(), mesh, megatron, 4));
  for (const char* kind : {"message", "all-gather", "reduce-scatter", "all-reduce"}) {
    CAPTURE(kind);
    CHECK(has_task(done, kind));
  }
}

TEST_CASE("two of context, two of experts") {
  const Json mesh = {{"dp", 2}, {"cp", 2}, {"tp", 2}};
  const Json strategy = {
      {"name", "megatron"}, {"sequence_parallel", true}, {"experts", {{"parallel", 2}}}};
  const Json done = run_on_eight(experiment(mixtral(), mesh, strategy));
  for (const char* kind : {"collective-permute", "all-to-all"}) {
    CAPTURE(kind);
    CHECK(has_task(done, kind));
  }
}

// Receives are there long before what they wait for; a ring of groups; a stage's own shards; heads
// that states need whole; stages that shift.
TEST_CASE("stages under other frameworks, and both kinds of context") {
  const Json heads = {{"method", "ring+all-to-all"}, {"head_devices", 2}};
  const Json each = GENERATE_COPY(
      experiment(llama(), {{"pp", 2}, {"dp_shard", 2}, {"tp", 2}}, "torchtitan", 2),
      experiment(llama(), {{"pp", 2}, {"dp", 2}, {"tp", 2}}, "deepspeed", 4),
      experiment(llama(), {{"dp", 2}, {"cp", 4}}, {{"name", "megatron"}, {"context", heads}}),
      experiment(mamba(), {{"dp", 2}, {"cp", 4}}, "megatron"),
      experiment(llama(), {{"stage", 4}, {"data", 2}},
                 {{"name", "dp"}, {"pipeline", {{"schedule", "shifting"}}}}, 4));
  (void)run_on_eight(each);
}

// Every framework once more, which takes minutes on two cores.
TEST_CASE("each framework on eight devices", "[.all]") {
  const Json each = GENERATE_COPY(
      experiment(llama(), {{"dp", 8}}, "fsdp1"), experiment(llama(), {{"fsdp", 8}}, "fsdp2"),
      experiment(llama(), {{"fsdp", 4}, {"cp", 2}}, "fsdp2"),
      experiment(mixtral(), {{"dp_shard", 8}},
                 {{"name", "torchtitan"}, {"experts", {{"parallel", 4}}}}),
      experiment(llama(), {{"pp", 2}, {"dp_shard", 4}},
                 {{"name", "torchtitan"}, {"pipeline", {{"schedule", "zbv"}}}}, 2),
      experiment(llama(), {{"dp", 8}}, "ddp"),
      experiment(llama(), {{"dp", 8}}, {{"name", "deepspeed"}, {"zero_stage", 1}}),
      experiment(llama(), {{"dp", 8}}, {{"name", "deepspeed"}, {"zero_stage", 2}}),
      experiment(llama(), {{"dp", 8}}, {{"name", "deepspeed"}, {"zero_stage", 3}}),
      experiment(llama(), {{"fsdp", 4}, {"tp", 2}}, "xla"),
      experiment(llama(), {{"dp_replicate", 2}, {"dp_shard", 4}}, "fsdp2"),
      experiment(llama(), {{"fsdp", 2}, {"tp", 4}}, "fsdp2"),
      experiment(mixtral(), {{"dp", 8}},
                 {{"name", "fsdp2"}, {"experts", {{"parallel", 4}}}, {"expert_units", "own"}}),
      experiment(mixtral(), {{"dp_replicate", 2}, {"dp_shard", 4}},
                 {{"name", "torchtitan"}, {"experts", {{"parallel", 2}}}}),
      experiment(mixtral(), {{"dp_shard", 4}, {"tp", 2}},
                 {{"name", "torchtitan"}, {"experts", {{"parallel", 4}}}}),
      experiment(llama(), {{"dp_shard", 4}, {"cp", 2}}, "torchtitan"),
      experiment(llama(), {{"dp", 8}}, {{"name", "deepspeed"}, {"zero_stage", 0}}),
      experiment(llama(), {{"dp", 8}}, {{"name", "deepspeed"}, {"zero_stage", 3}, {"hpz", 4}}),
      experiment(llama(), {{"pp", 4}, {"dp", 2}},
                 {{"name", "megatron"}, {"pipeline", {{"schedule", "zero-bubble"}}}}, 8),
      experiment(llama(), {{"dp", 2}, {"cp", 4}},
                 {{"name", "megatron"}, {"context", {{"method", "all-to-all"}}}}),
      experiment(mixtral(), {{"dp", 4}, {"tp", 2}},
                 {{"name", "megatron"},
                  {"sequence_parallel", true},
                  {"experts", {{"parallel", 8}, {"tensor_parallel", 1}}}}),
      experiment(mixtral(), {{"dp", 8}},
                 {{"name", "megatron"}, {"experts", {{"parallel", 8}, {"dispatch", "deepep"}}}}));
  (void)run_on_eight(each);
}

}  // namespace shardsim
