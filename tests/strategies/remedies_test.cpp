// What the remedies of a strategy's collectives promise: each is done as it says, and the
// collective is gone. Llama 3.1 8B on 8 devices.
#include <catch2/catch.hpp>

#include "model_step.hpp"

namespace shardsim {
namespace {

using Catch::Contains;

// The first collective of that kind whose reason has these words; null: there is none.
const Collective* find(const Plan& plan, CollectiveKind kind, const std::string& words) {
  for (const Collective& collective : plan.collectives) {
    if (collective.kind == kind && collective.reason.find(words) != std::string::npos)
      return &collective;
  }
  return nullptr;
}

Plan plan_of(const std::string& strategy, const Mesh& mesh) {
  return test::compile_step("llama-3.1-8b", mesh, strategy).plan;
}

const Mesh fsdp({{"fsdp", 8}});
const Mesh tp({{"data", 4}, {"model", 2}});

}  // namespace

TEST_CASE("Every collective of every recipe has a reason") {
  for (const char* strategy : {R"("dp")", R"({"name": "dp", "zero_stage": 2})", R"("tp")",
                               R"("fsdp+tp")", R"({"name": "tp", "sequence_parallel": true})",
                               R"({"name": "fsdp", "sequence_axes": ["model"]})"}) {
    const Mesh mesh({{std::string(strategy).find("fsdp") == std::string::npos ? "data" : "fsdp", 4},
                     {"model", 2}});
    for (const Collective& collective : plan_of(strategy, mesh).collectives) {
      CHECK_FALSE(collective.reason.empty());
    }
  }
}

TEST_CASE("Parameters without the axis in their specs are not gathered") {
  const std::string words =
      "model.layers.{} are stored over fsdp (fsdp: dimension 0 over fsdp) and read whole in the "
      "forward";
  const Plan plan = plan_of(R"("fsdp")", fsdp);
  const Collective* gather = find(plan, CollectiveKind::all_gather, words);
  REQUIRE(gather != nullptr);
  // 6,979,584,000 parameters in the 32 layers x 7/8 x 16 bytes: bf16 parameters and gradients, fp32
  // master and two moments.
  CHECK_THAT(gather->remedy, Contains("take fsdp off their specs: a device holds 91.0 GiB more"));
  const Plan whole =
      plan_of(R"({"name": "fsdp", "rules": [{"pattern": "model\\.layers", "spec": []}]})", fsdp);
  CHECK(find(whole, CollectiveKind::all_gather, words) == nullptr);
  CHECK(find(whole, CollectiveKind::all_reduce, "gradients of model.layers.{}") != nullptr);
}

TEST_CASE("What the forward pass gathered is not gathered again when it is kept") {
  const std::string words =
      "model.layers.{} are stored over fsdp (fsdp: dimension 0 over fsdp) and read whole in the "
      "backward";
  const Plan plan = plan_of(R"("fsdp")", fsdp);
  const Collective* gather = find(plan, CollectiveKind::all_gather, words);
  REQUIRE(gather != nullptr);
  // 6,979,584,000 parameters of two bytes.
  CHECK_THAT(gather->remedy,
             Contains("\"reshard_after_forward\": false keeps what the forward pass "
                      "gathered: 13.0 GiB more"));
  const Plan kept = plan_of(R"({"name": "fsdp", "reshard_after_forward": false})", fsdp);
  CHECK(find(kept, CollectiveKind::all_gather, words) == nullptr);
}

TEST_CASE("A tensor-parallel sum goes with the splits of the parameters that it names") {
  const std::string words = "model.layers.{}.self_attn.o_proj (matmul) sums over kv_heads";
  const Plan plan = plan_of(R"("tp")", tp);
  const Collective* sum = find(plan, CollectiveKind::all_reduce, words);
  REQUIRE(sum != nullptr);
  CHECK_THAT(sum->reason, Contains("which model splits (tp: dimension 1 over model)"));
  for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"}) {
    CHECK_THAT(sum->remedy, Contains(std::string("model.layers.{}.self_attn.") + name));
  }
  // 32 layers x (2 x 4096 x 4096 + 2 x 4096 x 1024) x 1/2 x 16 bytes = 10 GiB
  CHECK_THAT(sum->remedy, Contains("a device holds 10.0 GiB more"));
  const Plan whole = plan_of(
      R"({"name": "tp", "rules": [{"pattern": "self_attn\\.[qkvo]_proj", "spec": []}]})", tp);
  CHECK(find(whole, CollectiveKind::all_reduce, "self_attn.o_proj") == nullptr);
  CHECK(find(whole, CollectiveKind::all_reduce, "mlp.down_proj") != nullptr);
}

// The input gradients of several products are added up before they are reduced, as Megatron does.
TEST_CASE("The sum of partial sums names all that sum") {
  const Plan plan = plan_of(R"("tp")", tp);
  for (const std::vector<std::string>& summed :
       {std::vector<std::string>{"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"},
        {"mlp.gate_proj", "mlp.up_proj"}}) {
    const Collective* sum =
        find(plan, CollectiveKind::all_reduce, summed.front() + " (add) adds up the sums of ");
    REQUIRE(sum != nullptr);
    for (const std::string& name : summed) {
      CHECK_THAT(sum->reason, Contains("model.layers.{}." + name + " (matmul) over "));
      CHECK_THAT(sum->remedy, Contains("model.layers.{}." + name));
    }
  }
}

TEST_CASE("Sequence parallelism takes the place of an all-reduce, and its gathers go with it") {
  const Plan without = plan_of(R"("tp")", tp);
  const Plan with = plan_of(R"({"name": "tp", "sequence_parallel": true})", tp);
  const std::string sum = "mlp.down_proj (matmul) sums over ffn";
  const std::string gather = "\"sequence_parallel\" asks for";
  const Collective* all_reduce = find(without, CollectiveKind::all_reduce, sum);
  REQUIRE(all_reduce != nullptr);
  CHECK_THAT(all_reduce->remedy, Contains("\"sequence_parallel\": true"));
  CHECK(find(with, CollectiveKind::all_reduce, sum) == nullptr);
  const Collective* all_gather = find(with, CollectiveKind::all_gather, gather);
  REQUIRE(all_gather != nullptr);
  CHECK_THAT(all_gather->remedy, Contains("\"sequence_parallel\": false"));
  CHECK(find(without, CollectiveKind::all_gather, gather) == nullptr);
}

TEST_CASE("Without ZeRO the updated parameters are not gathered") {
  const Mesh data({{"data", 8}});
  const Plan plan = plan_of(R"({"name": "dp", "zero_stage": 1})", data);
  const Collective* gather =
      find(plan, CollectiveKind::all_gather, "parameters of model.layers.{}");
  REQUIRE(gather != nullptr);
  CHECK_THAT(gather->remedy,
             Contains("\"zero_stage\": 0: a device holds 68.3 GiB more optimizer "));
  CHECK(find(plan_of(R"("dp")", data), CollectiveKind::all_gather, "") == nullptr);
}

}  // namespace shardsim
