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

constexpr Bytes microbatch_bytes{sequence * hidden * 2};  // of 8 microbatches: one sequence

std::int64_t shifts(const Plan& plan, Bytes payload) {
  return count(plan, [&](const Collective& c) {
    return c.kind == CollectiveKind::collective_permute && c.payload == payload;
  });
}

}  // namespace

// 8 microbatches through 4 stages of 2 layers: 11 iterations, each of a microbatch of two sequences
// over two devices. One program; each ends with a permute, forward and back (praxis' scan has the
// shift in its body, layers/pipeline.py).
TEST_CASE("Every stage computes in every iteration, and shifts between them") {
  const Plan plan = plan_of(R"({"schedule": "shifting"})", 8);
  REQUIRE(plan.programs.size() == 1);
  const Plan alone = plan_of(R"({"schedule": "shifting"})", 8, 1);  // one stage: no pipeline
  CHECK(attention_flops(plan) / attention_flops(alone) == Approx(11.0 * 2 / (8.0 * 8)));
  CHECK(shifts(plan, microbatch_bytes) == 2 * 11);
  CHECK(shifts(alone, microbatch_bytes) == 0);
  for (const Collective& c : plan.collectives) {
    if (c.kind != CollectiveKind::collective_permute || c.payload != microbatch_bytes) continue;
    CHECK(c.source_targets.size() == 3 * 2);  // the last stage hands on to nobody
  }
  CHECK(plan.subject.parameters == alone.subject.parameters);
  CHECK(plan.subject.model_flops.count() == alone.subject.model_flops.count());
}

// Behind the loop: what 11 iterations have made, from the last stage to the first, the gradient of
// 8 results back; both ways a sum over the stages brings 8 microbatches to all. XLA has the same
// (oracle_shifting_steps).
TEST_CASE("Results and gradients of inputs go to all stages") {
  const Plan plan = plan_of(R"({"schedule": "shifting"})", 8);
  CHECK(shifts(plan, 11 * microbatch_bytes) == 1);
  CHECK(shifts(plan, 8 * microbatch_bytes) == 1);
  const auto over_stages = [](const Plan& of) {
    return count(of, [](const Collective& c) {
      return c.kind == CollectiveKind::all_reduce && c.payload == 8 * microbatch_bytes;
    });
  };
  CHECK(over_stages(plan) == 2);
  const Plan stream = plan_of(R"({"schedule": "shifting", "stream_io": true})", 8);
  CHECK(over_stages(stream) == 0);
  CHECK(shifts(stream, 8 * microbatch_bytes) == 0);
}

// The head sees all microbatches at once: its logits are of 8 sequences on each of two data shards.
// Those of a stream lie over the stages as well.
TEST_CASE("The head is computed once, of a stream a part on each stage") {
  const auto logits = [](const Plan& plan) {
    Bytes bytes{0};
    for (const Buffer& buffer : plan.programs.front().buffers) {
      if (plan.names[static_cast<std::size_t>(buffer.name)] == "loss.log_softmax") {
        bytes = std::max(bytes, buffer.bytes);
      }
    }
    return bytes;
  };
  const Bytes fp32_logits{8 * sequence * 128256 * 4};
  CHECK(logits(plan_of(R"({"schedule": "shifting"})", 8)) == fp32_logits);
  CHECK(logits(plan_of(R"({"schedule": "shifting", "stream_io": true})", 8)) ==
        Bytes(fp32_logits.count() / 4));
}

// Twice round the stages, each time through one layer: 19 iterations of one layer. As many
// microbatches as stages go straight on from the last stage to the first, more of them an iteration
// later, beside the next one (praxis, _async_circular_transfer).
TEST_CASE("Microbatches go round the stages again") {
  const Plan late = plan_of(R"({"schedule": "shifting", "repeats": 2})", 8);
  const Plan alone = plan_of(R"({"schedule": "shifting"})", 8, 1);
  CHECK(attention_flops(late) / attention_flops(alone) == Approx(19.0 / (8.0 * 8)));
  // Forward the shift and what goes round, back the shift and, in two, what went round.
  CHECK(shifts(late, microbatch_bytes) == 19 * 2 + 19 * 3);
  const Plan even = plan_of(R"({"schedule": "shifting", "repeats": 2})", 4);
  CHECK(shifts(even, 2 * microbatch_bytes) == 11 + 11 * 2);
  // Inputs and results in a stream that shifts as well.
  CHECK(shifts(plan_of(R"({"schedule": "shifting", "stream_io": true})", 8), microbatch_bytes) ==
        2 * 2 * 11);
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
