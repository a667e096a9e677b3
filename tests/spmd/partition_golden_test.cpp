// Programs partitioned by XLA (tests/golden/xla): from the sharding of every value the partitioner
// makes the same collectives; expected/*.json is what jax 0.10.2 made, read directly after its pass
// "spmd-partitioning".
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>

#include "base/json.hpp"
#include "golden_collectives.hpp"
#include "spmd/partition.hpp"
#include "spmd/propagation/prepare.hpp"
#include "spmd/propagation/propagate.hpp"
#include "spmd/to_plan.hpp"

namespace {
using namespace shardsim;        // NOLINT(google-build-using-namespace)
using namespace shardsim::test;  // NOLINT(google-build-using-namespace)

std::filesystem::path golden_folder() {
  const char* set = std::getenv("SHARDSIM_GOLDEN_DIR");
  return std::filesystem::path(set != nullptr ? set : SHARDSIM_SOURCE_DIR "/tests/golden") / "xla";
}

using MakeLocal = std::function<stablehlo::Module(const std::string& path)>;

// Where the reference is known to differ, and why.
const std::map<std::string, std::string>& known_differences() {
  static const std::map<std::string, std::string> known = {
      {"while_dynamic",
       "its list leaves out the all-reduce in the condition of its loop, which spmd/ has"}};
  return known;
}

struct Tally {
  int identical = 0;
  int known = 0;
  int same_bytes = 0;
  int cheaper = 0;
  int different = 0;
  int failed = 0;
  int more_bytes = 0;
};

void compare(const JsonReader& record, const std::string& path, const MakeLocal& make, Tally& tally,
             std::string& report) {
  const std::string name = record.at("name").string();
  const JsonReader rows = record.at("collectives");
  try {
    const Plan plan = spmd::plan_of(make(path));
    const std::string text = difference(expected_collectives(rows), actual_collectives(plan));
    if (text.empty()) {
      ++tally.identical;
      return;
    }
    if (const auto known = known_differences().find(name); known != known_differences().end()) {
      ++tally.known;
      report += fmt::format("  {}: known: {}\n{}", name, known->second, text);
      return;
    }
    const double expected = expected_wire_bytes(rows);
    const double actual = actual_wire_bytes(plan);
    if (actual > expected) ++tally.more_bytes;
    if (bytes_by_axes(rows) == bytes_by_axes(plan)) {
      ++tally.same_bytes;
    } else if (actual < expected) {
      ++tally.cheaper;
    } else {
      ++tally.different;
    }
    report += fmt::format("  {}: wire bytes {} for {}\n{}", name, actual, expected, text);
  } catch (const std::exception& error) {
    ++tally.failed;
    report += fmt::format("  {}: {}\n", name, error.what());
  }
}

// Of all programs; prints them by file.
Tally run_all(const char* key, const MakeLocal& make) {
  const std::filesystem::path folder = golden_folder() / "expected";
  if (!std::filesystem::exists(folder)) {
    std::cout << folder.string() << ": not there, skipped\n";
    return {};
  }
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  Tally all;
  for (const std::string& file : files) {
    const Json document = load_json(file);
    Tally tally;
    std::string report;
    for (const JsonReader& record : JsonReader(document, {file, ""}).elements()) {
      const auto program = record.find(key);
      if (!program || !std::filesystem::exists(golden_folder() / program->string())) continue;
      compare(record, (golden_folder() / program->string()).string(), make, tally, report);
    }
    const int others = tally.same_bytes + tally.cheaper + tally.different + tally.failed;
    std::cout << fmt::format("{} {}: {} passed, {} failed\n",
                             std::filesystem::path(file).filename().string(), key, tally.identical,
                             others)
              << report;
    all.identical += tally.identical;
    all.known += tally.known;
    all.same_bytes += tally.same_bytes;
    all.cheaper += tally.cheaper;
    all.different += tally.different;
    all.failed += tally.failed;
    all.more_bytes += tally.more_bytes;
  }
  std::cout << fmt::format(
      "{}: {} identical, {} same bytes, {} cheaper, {} different, {} failed, {} known differences; "
      "more wire bytes: {}\n",
      key, all.identical, all.same_bytes, all.cheaper, all.different, all.failed, all.known,
      all.more_bytes);
  return all;
}

int not_identical(const Tally& tally) {
  return tally.same_bytes + tally.cheaper + tally.different + tally.failed;
}

}  // namespace

TEST_CASE("from the shardings that Shardy propagated, the collectives are XLA's", "[propagated]") {
  CHECK(not_identical(run_all("propagated", [](const std::string& path) {
          return spmd::partition(stablehlo::read_module(path), {.like_xla = true});
        })) == 0);
}

TEST_CASE("from programs as jax prints them, the collectives are XLA's", "[programs]") {
  CHECK(not_identical(run_all("program", [](const std::string& path) {
          stablehlo::Module program = spmd::prepare(stablehlo::read_module(path));
          spmd::propagate(program);
          return spmd::partition(program, {.like_xla = true});
        })) == 0);
}

TEST_CASE("left to itself the partitioner never sends more than XLA", "[default]") {
  const Tally tally = run_all("program", [](const std::string& path) {
    stablehlo::Module program = spmd::prepare(stablehlo::read_module(path));
    spmd::propagate(program);
    return spmd::partition(program);
  });
  CHECK(tally.more_bytes == 0);
  CHECK(tally.failed == 0);
  // What is neither XLA's nor cheaper has the same bytes over the same axes.
  CHECK(tally.different == 0);
}
