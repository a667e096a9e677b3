// Stages that shift in one program: what is computed and sent against the arithmetic of
// lingvo's and praxis' loop (schedule/shifting_pipeline.hpp).
#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include "base/json.hpp"
#include "model_step.hpp"

namespace shardsim::test {
namespace {

using Catch::Matchers::Contains;

constexpr std::int64_t layers = 8, sequence = 512, hidden = 4096;

Plan plan_of(const std::string& pipeline, std::int64_t microbatches, std::int64_t stages = 4,
             const std::string& name = "dp") {
  const Json config = {{"base", "llama-3.1-8b"}, {"num_hidden_layers", layers}};
  const Mesh mesh({{"stage", stages}, {"data", 2}});
  const Step step{.batch = 16, .sequence = sequence, .microbatches = microbatches};
  const Json json = {{"name", name}, {"pipeline", parse_json(pipeline, "pipeline")}};
  return compile(build_step(load_model_config(JsonReader(config, {"model", ""}), ""), step), step,
                 mesh, read_strategy(JsonReader(json, {"strategy", ""}), mesh))
      .plan;
}

std::string error_of(const std::string& pipeline, std::int64_t microbatches,
                     const std::string& name = "dp", std::int64_t stages = 4) {
  try {
    (void)plan_of(pipeline, microbatches, stages, name);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

std::int64_t shifts(const Plan& plan) {
  return count(plan,
               [](const Collective& c) { return c.kind == CollectiveKind::collective_permute; });
}

}  // namespace

// 8 microbatches through 4 stages of 2 layers: 11 iterations, each of a microbatch of two sequences
// over two devices. One program; each ends with a
// permute, forward and back (praxis' scan has the shift in its body, layers/pipeline.py).
TEST_CASE("Every stage computes in every iteration, and shifts between them") {
  const Plan plan = plan_of(R"({"schedule": "shifting"})", 8);
  REQUIRE(plan.programs.size() == 1);
  const Plan alone = plan_of(R"({"schedule": "shifting"})", 8, 1);  // one stage: no pipeline
  CHECK(attention_flops(plan) / attention_flops(alone) == Approx(11.0 * 2 / (8.0 * 8)));
  CHECK(shifts(plan) == 2 * 11);
  CHECK(shifts(alone) == 0);
  for (const Collective& c : plan.collectives) {
    if (c.kind != CollectiveKind::collective_permute) continue;
    CHECK(c.payload == Bytes(sequence * hidden * 2));
    CHECK(c.source_targets.size() == 3 * 2);  // the last stage hands on to nobody
  }
  CHECK(plan.subject.parameters == alone.subject.parameters);
  CHECK(plan.subject.model_flops.count() == alone.subject.model_flops.count());
}

// Twice round the stages, each time through one layer: 19 iterations of one layer, and the last
// stage hands on to the first.
TEST_CASE("Microbatches go round the stages again") {
  const Plan plan = plan_of(R"({"schedule": "shifting", "repeats": 2})", 8);
  const Plan alone = plan_of(R"({"schedule": "shifting"})", 8, 1);
  CHECK(attention_flops(plan) / attention_flops(alone) == Approx(19.0 / (8.0 * 8)));
  CHECK(shifts(plan) == 2 * 19);
  for (const Collective& c : plan.collectives) {
    if (c.kind == CollectiveKind::collective_permute) CHECK(c.source_targets.size() == 4 * 2);
  }
  // Inputs and results in a stream that shifts as well.
  CHECK(shifts(plan_of(R"({"schedule": "shifting", "stream_io": true})", 8)) == 2 * 2 * 11);
}

TEST_CASE("What stages of one program cannot do is said") {
  CHECK_THAT(error_of(R"({"schedule": "shifting", "repeats": 3})", 8),
             Contains("8 layers do not divide into 4 stages of 3 repeats"));
  CHECK_THAT(error_of(R"({"schedule": "shifting", "repeats": 2})", 2),
             Contains("2 microbatches: a circular pipeline of 4 stages needs as many"));
  CHECK_THAT(error_of(R"({"schedule": "shifting", "stream_io": true})", 2),
             Contains("2 microbatches cannot be streamed through 4 stages"));
  CHECK_THAT(error_of(R"({"schedule": "shifting", "virtual_stages": 2})", 8),
             Contains("unknown key \"virtual_stages\""));
  CHECK_THAT(error_of(R"({"schedule": "shifting"})", 8, "megatron"),
             Contains("/pipeline/schedule: \"shifting\" is one program that XLA splits"));
  CHECK_THAT(error_of(R"({"schedule": "1f1b"})", 8, "praxis"), Contains("/pipeline: "));
}

}  // namespace shardsim::test
