#include "checks/measure.hpp"

#include <catch2/catch.hpp>

#include "base/json.hpp"
#include "checks/check.hpp"
#include "reports/step/json_report.hpp"

namespace shardsim {
namespace {

Experiment tiny(const std::string& changes = "{}") {
  Json document = parse_json(
      R"({"workload": {"model": "gpt2", "batch": 8, "sequence": 128},
          "mesh": {"fsdp": 4}, "strategy": "fsdp", "machine": "dgx-h100"})",
      "tiny.json");
  document.merge_patch(parse_json(changes, "changes"));
  return read_experiments(document, "tiny.json").front();
}

TEST_CASE("what is recorded is what run reports") {
  const Experiment experiment = tiny();
  const Recorded recorded = Meter().measure(experiment).recorded;
  const Json result = result_to_json(figures_of(predict(experiment, {})));
  CHECK(recorded.values.at("step_time_s") == result["step_time_s"].get<double>());
  double parts = 0;
  for (const char* part :
       {"compute_time_s", "contention_time_s", "exposed_communication_s", "idle_time_s"}) {
    INFO(part);
    CHECK(recorded.values.at(part) == result[part].get<double>());
    parts += recorded.values.at(part);
  }
  CHECK(parts == Approx(recorded.values.at("step_time_s")));
  CHECK(recorded.values.at("peak_bytes") == result["memory"]["peak_bytes"].get<double>());
  for (const auto& [category, bytes] : recorded.by_category) {
    INFO(category);
    CHECK(bytes == result["memory"]["by_category"][category].get<std::int64_t>());
  }
  for (const Json& row : result["communication"]) {
    const std::string name = row["kind"].get<std::string>() + " over fsdp";
    INFO(name);
    CHECK(recorded.communication.at(name).calls == row["count"].get<std::int64_t>());
    CHECK(recorded.communication.at(name).wire.count() ==
          row["wire_bytes_per_device"].get<std::int64_t>());
  }
  CHECK(recorded.communication.size() == result["communication"].size());
}

TEST_CASE("digests differ in what changed and in nothing else") {
  Meter meter;
  const MadeFrom before = meter.measure(tiny()).recorded.made_from;
  const MadeFrom batch = meter.measure(tiny(R"({"workload": {"batch": 16}})")).recorded.made_from;
  CHECK(batch.experiment != before.experiment);
  CHECK(batch.model == before.model);
  CHECK(batch.machine == before.machine);
  CHECK(batch.calibration == before.calibration);
  const MadeFrom named = meter.measure(tiny(R"({"name": "other"})")).recorded.made_from;
  CHECK(named == before);
  const MadeFrom machine = meter.measure(tiny(R"({"machine": "dgx-a100"})")).recorded.made_from;
  CHECK(machine.machine != before.machine);
}

// More sequences cost more of everything but parameters, and no more calls.
TEST_CASE("a larger batch is told as the change of the experiment") {
  Meter meter;
  const Recorded before = meter.measure(tiny()).recorded;
  const Measured now = meter.measure(tiny(R"({"workload": {"batch": 64}})"));
  const CheckedExperiment checked = check_experiment("tiny", &before, now, {}, {});
  REQUIRE_FALSE(checked.violations.empty());
  CHECK(checked.violations[0].metric == "step_time_s");
  CHECK(checked.violations[0].causes[0] == "the experiment changed: workload.batch 8 -> 64");
}

TEST_CASE("without a machine collectives and shardings are recorded, and no times") {
  const Recorded recorded = Meter().measure(tiny(R"({"machine": null})")).recorded;
  CHECK_FALSE(recorded.values.contains("step_time_s"));
  CHECK(recorded.communication == Meter().measure(tiny()).recorded.communication);
  CHECK(recorded.shardings.at("transformer.wte.weight") == "P(fsdp, None)");
}

TEST_CASE("a parameter tree has parameters alone") {
  const Json document = parse_json(
      R"({"workload": {"tree": {"schema": "shardsim/parameter-tree/1",
                            "parameters": {"w": {"shape": [8, 8]}, "norm": {"shape": [8]}}}},
          "mesh": {"fsdp": 4},
          "strategy": {"name": "rules", "rules": [{"pattern": "w", "spec": ["fsdp", null]}]}})",
      "tree.json");
  const Recorded recorded =
      Meter().measure(read_experiments(document, "tree.json").front()).recorded;
  CHECK(recorded.shardings.at("w") == "P(fsdp, None)");
  // 8 x 8 / 4 and 8 numbers of four bytes.
  CHECK(recorded.values.at("parameter_bytes") == 96);
  CHECK(recorded.values.at("replicated_parameters") == 1);
}

// Eight layers and an embedding, all split; then a rule for the first layer alone, and for all.
TEST_CASE("parameters of a tree that become whole are seen one by one") {
  const auto tree = [](const std::string& first_rule) {
    std::string parameters = R"("embedding": {"shape": [64, 64]})";
    for (int i = 0; i < 8; ++i) {
      parameters += R"(, "layers/)" + std::to_string(i) + R"(/w": {"shape": [64, 64]})";
    }
    return read_experiments(
               parse_json(R"({"workload": {"tree": {"schema": "shardsim/parameter-tree/1",
                              "parameters": {)" +
                              parameters + R"(}}}, "mesh": {"fsdp": 4},
                              "strategy": {"name": "rules", "rules": [)" +
                              first_rule + R"({"pattern": ".*", "spec": ["fsdp", null]}]}})",
                          "tree.json"),
               "tree.json")
        .front();
  };
  const Recorded before = Meter().measure(tree("")).recorded;
  const auto violation = [&](const std::string& rule) {
    const CheckedExperiment checked =
        check_experiment("tree", &before, Meter().measure(tree(rule)), {}, {});
    for (const CheckFinding& finding : checked.violations) {
      if (finding.metric == "newly_replicated_parameters") return finding;
    }
    return CheckFinding{};
  };
  const CheckFinding one = violation(R"({"pattern": "layers/0/w", "spec": []}, )");
  CHECK(one.now == 1);
  REQUIRE(one.causes.size() == 2);
  CHECK(one.causes[1].starts_with("layers/0/w is whole on every device, P(fsdp, None) before; "));
  const CheckFinding all = violation(R"({"pattern": "layers/.*", "spec": []}, )");
  CHECK(all.now == 8);
  REQUIRE(all.causes.size() == 2);
  CHECK(all.causes[1].starts_with("layers/{0-7}/w is whole on every device, "));
}

}  // namespace
}  // namespace shardsim
