#include "checks/baseline.hpp"

#include <catch2/catch.hpp>

#include "base/json.hpp"
#include "tests/base/mistake.hpp"
#include "tests/checks/fixture.hpp"

namespace shardsim {
namespace {

Baseline made() {
  Baseline baseline;
  *baseline.stated_limits = {{"*", {{"step_time_s", "+3 %"}}}};
  baseline.experiments["fsdp"] = fixture::recorded_before();
  Recorded& other = baseline.experiments["b"] = fixture::recorded_before();
  other.name = "of another name";
  other.options = {"--machine=dgx-a100"};
  other.unmatched_rules = {"norm"};
  return baseline;
}

TEST_CASE("a baseline reads back to the same, and is written the same again") {
  const std::string text = baseline_text(made());
  const Baseline again = read_baseline(text, "base.json");
  CHECK(again.experiments == made().experiments);
  CHECK(again.limits.of("fsdp", "step_time_s").growth->text == "+3 %");
  CHECK(baseline_text(again) == text);
}

TEST_CASE("the largest figures of a baseline are written as they were read") {
  const std::string stated = R"({"schema": "shardsim/baseline/1", "experiments": {"a": {
      "step_time_s": 1e308, "peak_bytes": 4611686018427387904,
      "by_category": {"activations": 4611686018427387904}}}})";
  const Baseline read = read_baseline(stated, "base.json");
  const std::string text = baseline_text(read);
  CHECK(read_baseline(text, "base.json").experiments == read.experiments);
  CHECK(text.find("\"peak_bytes\": 4611686018427387904") != std::string::npos);
}

TEST_CASE("what can change alone has a line of its own") {
  const std::string text = baseline_text(made());
  for (const char* line : {"   \"step_time_s\": 1.0,\n", "   \"peak_bytes\": 10737418240,\n",
                           "   \"fits\": true,\n", "    \"activations\": 4294967296,\n",
                           "    \"all-gather over fsdp\": {\"calls\": 32, \"wire_bytes\": "
                           "25769803776},\n",
                           "    \"lm_head.weight\": \"P(fsdp, None)\",\n",
                           "    \"strategy\": {\"name\": \"fsdp\", \"reshard_after_forward\": "
                           "false},\n"}) {
    INFO(line);
    CHECK(text.find(line) != std::string::npos);
  }
}

TEST_CASE("what is no baseline is refused with its place") {
  const auto mistake = [](const std::string& text) {
    return testing::mistake_of([&] { return read_baseline(text, "b.json"); });
  };
  CHECK(mistake("{}") == "b.json: missing key \"schema\"");
  CHECK(mistake(R"({"schema": "shardsim/result/1"})") ==
        "b.json: is a result, not a baseline: its \"experiment\" is one");
  CHECK(mistake(R"({"schema": "other/1"})") ==
        "b.json: /schema: \"other/1\" is neither \"shardsim/baseline/1\" nor "
        "\"shardsim/limits/1\"");
  CHECK(mistake(R"({"schema": "shardsim/baseline/1", "experiment": {}})") ==
        "b.json: unknown key \"experiment\", did you mean \"experiments\"?");
  CHECK(mistake(R"({"schema": "shardsim/baseline/1",
                    "experiments": {"a": {"step_time_s": "1 s"}}})") ==
        "b.json: /experiments/a/step_time_s: expected a number, found a string");
  CHECK(mistake(R"({"schema": "shardsim/baseline/1",
                    "experiments": {"a": {"peak_bytes": -1}}})") ==
        "b.json: /experiments/a/peak_bytes: -1 is out of range, must be from 0 to "
        "4611686018427387904");
  CHECK(mistake(R"({"schema": "shardsim/baseline/1",
                    "experiments": {"a": {"peak_bytes": 1.5}}})") ==
        "b.json: /experiments/a/peak_bytes: expected an integer, found 1.5");
  CHECK(mistake(R"({"schema": "shardsim/baseline/1", "experiments": {"a": {"communication": {
                      "all-gather over x": {"calls": 1, "wire_bytes": 4611686018427387904},
                      "all-gather over y": {"calls": 1, "wire_bytes": 1}}}}})") ==
        "b.json: /experiments/a/communication/all-gather over y/wire_bytes: with those before it "
        "more than 4611686018427387904");
  CHECK(mistake(R"({"schema": "shardsim/baseline/1",
                    "experiments": {"a": {"step_time_s": -1}}})") ==
        "b.json: /experiments/a/step_time_s: expected a number of at least 0");
  CHECK(mistake(R"({"schema": "shardsim/baseline/1",
                    "experiments": {"a": {"file": "a.json", "folder": "dumps"}}})") ==
        "b.json: /experiments/a: has a \"file\" and a \"folder\": leave one of them out");
}

TEST_CASE("an experiment without figures is there for its budgets") {
  const Baseline baseline = read_baseline(
      R"({"schema": "shardsim/baseline/1", "experiments": {"a": {"file": "a.json"}}})", "b.json");
  CHECK_FALSE(baseline.experiments.at("a").holds_figures());
  CHECK(fixture::recorded_before().holds_figures());
}

}  // namespace
}  // namespace shardsim
