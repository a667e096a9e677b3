#include "strategies/layout/assign.hpp"

#include <catch2/catch.hpp>

#include "model_step.hpp"

using namespace shardsim;
using namespace shardsim::test;

namespace {

const Mesh mesh({{"fsdp", 4}, {"model", 2}});

std::string error_of(const std::string& strategy) {
  try {
    (void)compile_step("llama-3.1-8b", mesh, strategy);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

const ParameterSharding& find(const CompiledStep& step, const std::string& name) {
  for (const ParameterSharding& p : step.parameters) {
    if (p.name == name) return p;
  }
  FAIL("no parameter " << name);
  return step.parameters.front();
}

using Spec = PartitionSpec;

}  // namespace

TEST_CASE("fsdp+tp: Megatron's columns and rows over model, dimension 0 over fsdp") {
  const CompiledStep step = compile_step("llama-3.1-8b", mesh, R"("fsdp+tp")");
  const ParameterSharding& q = find(step, "model.layers.{}.self_attn.q_proj.weight");
  CHECK(q.spec == Spec{{"model", "fsdp"}, {}});
  CHECK(q.compute_spec == Spec{{"model"}, {}});
  CHECK(q.shard_shape == std::vector<std::int64_t>{512, 4096});
  const ParameterSharding& o = find(step, "model.layers.{}.self_attn.o_proj.weight");
  CHECK(o.spec == Spec{{"fsdp"}, {"model"}});
  CHECK(o.compute_spec == Spec{{}, {"model"}});
  CHECK(find(step, "model.embed_tokens.weight").spec == Spec{{"model", "fsdp"}, {}});
  CHECK(find(step, "model.norm.weight").spec == Spec{{"fsdp"}});
}

TEST_CASE("shard_dimension largest takes what divides, the later of equals") {
  const CompiledStep step = compile_step("llama-3.1-8b", Mesh({{"fsdp", 8}}),
                                         R"({"name": "fsdp", "shard_dimension": "largest"})");
  CHECK(find(step, "model.layers.{}.self_attn.q_proj.weight").spec == Spec{{}, {"fsdp"}});
  CHECK(find(step, "model.layers.{}.mlp.down_proj.weight").spec == Spec{{}, {"fsdp"}});
  CHECK(find(step, "model.layers.{}.mlp.up_proj.weight").spec == Spec{{"fsdp"}, {}});
}

TEST_CASE("Rules go before the recipe; the first match wins") {
  const CompiledStep step = compile_step("llama-3.1-8b", mesh, R"json({"name": "fsdp", "rules": [
      {"pattern": "norm", "spec": []}, {"pattern": "mlp\\.(gate|up)", "spec": ["model", "fsdp"]}]})json");
  CHECK(find(step, "model.layers.{}.input_layernorm.weight").spec == Spec{{}});
  CHECK(find(step, "model.layers.{}.input_layernorm.weight").assigned_by == "rule 0: norm");
  CHECK(find(step, "model.layers.{}.mlp.gate_proj.weight").spec == Spec{{"model"}, {"fsdp"}});
  CHECK(find(step, "model.layers.{}.mlp.down_proj.weight").spec == Spec{{"fsdp"}, {}});
}

TEST_CASE("ZeRO stages shard what they say") {
  const Mesh data({{"data", 8}});
  const auto q = [&](const char* strategy) {
    return find(compile_step("llama-3.1-8b", data, strategy),
                "model.layers.{}.self_attn.q_proj.weight");
  };
  const ParameterSharding one = q(R"({"name": "dp", "zero_stage": 1})");
  CHECK(one.spec == Spec{{}, {}});
  CHECK(one.gradient_spec == Spec{{}, {}});
  CHECK(one.optimizer_spec == Spec{{"data"}, {}});
  CHECK(q(R"({"name": "dp", "zero_stage": 2})").gradient_spec == Spec{{"data"}, {}});
}

TEST_CASE("Rules that cannot be meant are errors with their place") {
  CHECK(error_of(R"({"name": "rules", "rules": [{"pattern": "encoder", "spec": ["fsdp"]}]})") ==
        "strategy: /rules/0: pattern \"encoder\" matches no parameter");
  CHECK(error_of(R"({"name": "rules", "rules": [{"pattern": "norm", "spec": [null, "fsdp"]}]})") ==
        "strategy: /rules/0: spec has 2 entries, but model.layers.{}.input_layernorm.weight has 1 "
        "dimensions");
  CHECK(error_of(R"({"name": "rules", "rules": [{"pattern": "layers\\.0\\.", "spec": []}]})") ==
        "strategy: /rules/0: pattern \"layers\\.0\\.\" tells layers of one repeated block apart "
        "(model.layers.0.input_layernorm.weight and model.layers.1.input_layernorm.weight), which "
        "is not supported");
  CHECK(error_of(R"({"name": "dp", "activations": [{"pattern": "no such value", "spec": []}]})") ==
        "strategy: /activations/0: pattern \"no such value\" matches no activation");
}

// constraints.py 5c877a3: with_sharding_constraint is applied only when the mesh has every axis of
// the spec. Own rules, and JAX, refuse it.
TEST_CASE("eformer skips a constraint on an axis that the mesh lacks, and we say so") {
  const auto strategy = [](const char* name, const char* activations) {
    return std::string(R"({"name": ")") + name + R"(", "rules": [[".*", []]], "activations": )" +
           activations + "}";
  };
  const CompiledStep skipped =
      compile_step("llama-3.1-8b", mesh,
                   strategy("match_partition_rules",
                            R"([{"pattern": "mlp.up_proj$", "spec": ["fsdp", "spx"]}])"));
  CHECK(std::count(
            skipped.warnings.begin(), skipped.warnings.end(),
            "the constraint P(fsdp, spx) on model.layers.{}.mlp.up_proj is skipped, as eformer "
            "does where the mesh lacks an axis") == 1);
  // The later version drops the entry alone; names stand for the axes of its PartitionAxis.
  const CompiledStep corrected = compile_step(
      "llama-3.1-8b", mesh,
      strategy("partition_manager",
               R"([{"pattern": "mlp.up_proj$", "spec": ["__FSDP__", "__LENGTH__"]}])"));
  CHECK(std::count(
            corrected.warnings.begin(), corrected.warnings.end(),
            "the constraint P(fsdp, sp) on model.layers.{}.mlp.up_proj becomes P(fsdp, None, "
            "None), as eformer does where the mesh lacks an axis or a dimension does not divide") ==
        1);
}

TEST_CASE("What the strategy leaves unused is worth a word") {
  const CompiledStep idle = compile_step("llama-3.1-8b", mesh, R"("fsdp")");
  REQUIRE(idle.warnings.size() == 1);
  CHECK(idle.warnings[0] == "axis \"model\" is used by nothing: its 2 devices all do the same");
  const CompiledStep shadowed = compile_step("llama-3.1-8b", mesh, R"({"name": "fsdp+tp", "rules": [
      {"pattern": ".", "spec": []}, {"pattern": "norm", "spec": ["fsdp"]}]})");
  REQUIRE_FALSE(shadowed.warnings.empty());
  CHECK(shadowed.warnings[0] ==
        "rule 1 \"norm\" never gets its turn: rule 0 \".\" comes before it and matches every "
        "parameter that it matches");
}
