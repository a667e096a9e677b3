#include "checks/check.hpp"

#include <catch2/catch.hpp>

#include "base/json.hpp"
#include "tests/base/mistake.hpp"
#include "tests/checks/fixture.hpp"

namespace shardsim {
namespace {

using fixture::check_against_before;

std::vector<std::string> metrics_in(const std::vector<CheckFinding>& findings) {
  std::vector<std::string> names;
  for (const CheckFinding& finding : findings) names.push_back(finding.metric);
  return names;
}

const CheckFinding& finding_of(const std::vector<CheckFinding>& findings,
                               const std::string& metric) {
  for (const CheckFinding& finding : findings) {
    if (finding.metric == metric) return finding;
  }
  FAIL("no finding of " + metric);
  return findings.front();
}

TEST_CASE("what has not changed violates nothing and improves nothing") {
  const CheckedExperiment checked = check_against_before(fixture::measured_before());
  CHECK(checked.violations.empty());
  CHECK(checked.improvements.empty());
}

// +10 % of step time (limit 2 %), +67 % of exposed time (10 %), +5 % of the peak (1 %), twice the
// gathers, +50 % of all bytes sent. The reduce-scatters are what they were.
TEST_CASE("every metric that grew by more than its limit is a violation") {
  const CheckedExperiment checked = check_against_before(fixture::measured_worse());
  CHECK(metrics_in(checked.violations) ==
        std::vector<std::string>{"step_time_s", "exposed_communication_s", "peak_bytes",
                                 "wire_bytes", "wire_bytes.all-gather over fsdp",
                                 "calls.all-gather over fsdp"});
  const CheckFinding& calls = finding_of(checked.violations, "calls.all-gather over fsdp");
  CHECK(calls.baseline == 32);
  CHECK(calls.now == 64);
  CHECK(calls.limit == "+0");
}

TEST_CASE("growth up to the limit is none, beyond it is") {
  Measured measured = fixture::measured_before();
  measured.recorded.values["step_time_s"] = 1.02;
  CHECK(check_against_before(measured).violations.empty());
  measured.recorded.values["step_time_s"] = 1.0201;
  CHECK(metrics_in(check_against_before(measured).violations) ==
        std::vector<std::string>{"step_time_s"});
}

TEST_CASE("less by more than the limit is an improvement") {
  Measured measured = fixture::measured_before();
  measured.recorded.values["step_time_s"] = 0.99;
  CHECK(check_against_before(measured).improvements.empty());
  measured.recorded.values["step_time_s"] = 0.97;
  measured.recorded.communication.erase("reduce-scatter over fsdp");
  const CheckedExperiment checked = check_against_before(measured);
  CHECK(metrics_in(checked.improvements) ==
        std::vector<std::string>{"step_time_s", "wire_bytes", "wire_bytes.reduce-scatter over fsdp",
                                 "calls.reduce-scatter over fsdp"});
  CHECK(finding_of(checked.improvements, "calls.reduce-scatter over fsdp").now == 0);
  CHECK(checked.violations.empty());
}

TEST_CASE("a step that no longer fits is a violation, one that fits again an improvement") {
  Measured measured = fixture::measured_before();
  measured.recorded.values["fits"] = 0;
  CHECK(metrics_in(check_against_before(measured).violations) == std::vector<std::string>{"fits"});

  Recorded before = fixture::recorded_before();
  before.values["fits"] = 0;
  const CheckedExperiment checked =
      check_experiment("fsdp", &before, fixture::measured_before(), {}, {});
  CHECK(metrics_in(checked.improvements) == std::vector<std::string>{"fits"});
  CHECK(checked.violations.empty());
}

TEST_CASE("budgets hold without a baseline") {
  const Json document = parse_json(
      R"({"*": {"peak_bytes": "<= 9GiB", "fits": true, "calls": {"all-gather": "<= 31"},
                "step_time_s": "<= 2 s"}})",
      "b.json");
  const Limits limits = read_limits(JsonReader(document, {"b.json", ""}));
  const CheckedExperiment checked =
      check_experiment("fsdp", nullptr, fixture::measured_before(), limits, {});
  CHECK(metrics_in(checked.violations) ==
        std::vector<std::string>{"peak_bytes", "calls.all-gather"});
  CHECK_FALSE(checked.violations[0].baseline);
  CHECK(checked.violations[1].limit == "<= 31");
  CHECK(checked.violations[1].now == 32);
  // Without a baseline the cause is what there is.
  CHECK_THAT(checked.violations[1].causes.at(0),
             Catch::Contains("parameters are stored over fsdp"));
  CHECK(checked.improvements.empty());
}

TEST_CASE("a parameter that became whole everywhere, a rule that no longer matches") {
  Measured measured = fixture::measured_before();
  measured.recorded.shardings["lm_head.weight"] = "P(None, None)";
  measured.recorded.unmatched_rules = {"head"};
  const CheckedExperiment checked = check_against_before(measured);
  REQUIRE(metrics_in(checked.violations) ==
          std::vector<std::string>{"newly_replicated_parameters", "newly_unmatched_rules"});
  CHECK(checked.violations[0].causes.back() ==
        "lm_head.weight is whole on every device, P(fsdp, None) before");
  CHECK(checked.violations[1].causes.back() == "rule \"head\" matches no parameter");
}

TEST_CASE("a step that lost its machine cannot be compared") {
  Measured measured = fixture::measured_before();
  measured.recorded.values.clear();
  CHECK(testing::mistake_of([&] { return check_against_before(measured); }) ==
        "fsdp: has no machine, and its baseline has a step time: name one, or --record");
}

}  // namespace
}  // namespace shardsim
