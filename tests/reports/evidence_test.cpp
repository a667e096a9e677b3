// What was measured near a predicted step.
#include "reports/evidence/evidence.hpp"

#include <catch2/catch.hpp>

#include "base/error.hpp"

namespace shardsim {
namespace {

using Catch::Matchers::Contains;

Situation small_step() {
  return {.stack = "eager",
          .device = "A100",
          .step = "train",
          .has_experts = false,
          .parameters = 1e9,
          .devices = 8,
          .tokens = 4096,
          .sequence = 2048};
}

// Ten, whose measured times are 1.0, 1.1 ... 1.9 of the predicted ones; each has twice the
// parameters of the one before.
std::vector<PublishedStep> ten_steps() {
  std::vector<PublishedStep> steps;
  for (int i = 0; i < 10; ++i) {
    PublishedStep step{"source/" + std::to_string(i), small_step(), 1 + 0.1 * i, 1};
    step.situation.parameters *= 1 << i;
    steps.push_back(step);
  }
  return steps;
}

}  // namespace

TEST_CASE("evidence is the percentiles of what is alike") {
  const StepEvidence evidence = evidence_for(small_step(), ten_steps());
  CHECK(evidence.steps == 10);
  CHECK(evidence.low == Approx(1.09));  // linear between the first and the second
  CHECK(evidence.median == Approx(1.45));
  CHECK(evidence.high == Approx(1.81));
  CHECK(evidence.of == "10 published train steps of dense models, eager on A100");
  REQUIRE(evidence.nearest.size() == 3);
  CHECK(evidence.nearest[0].id == "source/0");
  CHECK(evidence.nearest[2].id == "source/2");
  CHECK(evidence.outside.empty());
  CHECK(evidence.pairs == 0);
}

TEST_CASE("where too few are alike, more are") {
  Situation other = small_step();
  other.stack = "compiled";
  CHECK_THAT(evidence_for(other, ten_steps()).of, Contains("of dense models on A100"));
  other.device = "B300";
  CHECK_THAT(evidence_for(other, ten_steps()).of, Contains("train steps of dense models"));
  other.has_experts = true;
  CHECK_THAT(evidence_for(other, ten_steps()).of, Contains("10 published train steps"));
  other.step = "decode";
  CHECK(evidence_for(other, ten_steps()).steps == 0);
}

// 2^9 times 1e9 parameters is the largest, 4096 tokens are all there is.
TEST_CASE("sizes beyond twice what was measured are said") {
  Situation beyond = small_step();
  beyond.parameters = 2e12;
  beyond.tokens = 1024;
  const StepEvidence evidence = evidence_for(beyond, ten_steps());
  REQUIRE(evidence.outside.size() == 2);
  CHECK(evidence.outside[0] ==
        "parameters 2,000,000,000,000; at most 512,000,000,000 was measured");
  CHECK(evidence.outside[1] == "tokens of a device 1,024; at least 4,096 was measured");
}

// Of one source and model 1.0 and 1.1, 1.2: ratios 1.1, 1.2 and 1.0909.
TEST_CASE("two of one source and model say by how much errors differ") {
  std::vector<PublishedStep> steps = ten_steps();
  for (int i = 0; i < 3; ++i) steps[static_cast<std::size_t>(i)].situation = small_step();
  const StepEvidence evidence = evidence_for(small_step(), steps);
  CHECK(evidence.pairs == 3);
  CHECK(evidence.between_two == Approx(1.1 + 0.8 * 0.1));
}

TEST_CASE("a table of measured steps is read, or an error with its line") {
  const std::string header = "# sources\nid\tand so on\n";
  const std::string there = "a/1\teager\tA100, 400 W\ttrain\texperts\t5\t2\t3\t4\t";
  const auto steps = read_published_steps(header + there + "1.5\t1\n");
  REQUIRE(steps.size() == 1);
  CHECK(steps[0].situation.device == "A100, 400 W");
  CHECK(steps[0].situation.has_experts);
  CHECK(steps[0].ratio() == 1.5);
  CHECK_THROWS_WITH(read_published_steps(header + "a\tb\n"), Contains("line 3"));
  CHECK_THROWS_WITH(read_published_steps(header + there + "0\t1\n"),
                    Contains("\"0\" is no positive number"));
}

TEST_CASE("the steps that ship are read, with their sources") {
  CHECK(published_steps().size() > 500);
  for (const PublishedStep& step : published_steps()) {
    CHECK(step.ratio() > 0.02);
    CHECK(step.ratio() < 50);
  }
}

}  // namespace shardsim
