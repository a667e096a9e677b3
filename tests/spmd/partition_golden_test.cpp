// Programs partitioned by XLA (tests/golden/xla): the partitioner makes the same collectives;
// expected/*.json is what jax 0.10.2 made, read directly after its pass "spmd-partitioning".
// agreement.hpp says what is compared, and which programs differ on purpose.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <functional>
#include <iostream>

#include "base/json.hpp"
#include "spmd/partition.hpp"
#include "spmd/propagation/prepare.hpp"
#include "spmd/propagation/propagate.hpp"
#include "spmd/to_plan.hpp"
#include "tests/base/golden_files.hpp"
#include "tests/spmd/agreement.hpp"

namespace shardsim::test {
namespace {

using MakePlan = std::function<Plan(const std::string& path)>;

Plan partitioned(const std::string& path, const spmd::PartitionOptions& options) {
  stablehlo::Module program = spmd::prepare(stablehlo::read_module(path));
  spmd::propagate(program);
  return spmd::plan_of(spmd::partition(program, options));
}

Plan partitioned_like_xla(const std::string& path) { return partitioned(path, {.like_xla = true}); }

// Every record that has a program under `key`; `is_right` says which agreement will do.
void check_all(const std::string& key, const MakePlan& make,
               const std::function<bool(const ProgramAgreement&)>& is_right) {
  int programs = 0;
  int unexpected = 0;
  for (const GoldenRecords& file : golden_records(golden_folder("xla") / "expected")) {
    Comparison result;
    for (const JsonReader& record : file.records()) {
      const auto program = record.find(key);
      if (!program) continue;
      const auto path = plain_or_gzip(golden_folder("xla") / program->string());
      if (!path) program->fail("no such file");
      ++programs;
      const ProgramAgreement found = compare_program(record, [&] { return make(*path); });
      if (is_right(found)) {
        ++result.passed;
        continue;
      }
      const bool is_known = known_differences().count(found.name) > 0;
      unexpected += is_known ? 0 : 1;
      result.failures.push_back(fmt::format("{}: {}{}, wire bytes {} for {}\n{}", found.name,
                                            name_of(found.agreement), is_known ? " (known)" : "",
                                            found.bytes, found.expected_bytes, found.text));
    }
    report(file.name() + " " + key, result);
  }
  std::cout << fmt::format("{}: {} programs, {} unexpected\n", key, programs, unexpected);
  CHECK(programs > 0);
  CHECK(unexpected == 0);
}

bool is_identical(const ProgramAgreement& found) { return found.agreement == Agreement::identical; }

}  // namespace

TEST_CASE("from the shardings that Shardy propagated, the collectives are XLA's", "[propagated]") {
  const MakePlan make = [](const std::string& path) {
    return spmd::plan_of(spmd::partition(stablehlo::read_module(path), {.like_xla = true}));
  };
  check_all("propagated", make, is_identical);
}

TEST_CASE("from programs as jax prints them, the collectives are XLA's", "[programs]") {
  check_all("program", partitioned_like_xla, is_identical);
}

TEST_CASE("from programs with mhlo.sharding in place of axes, too", "[gspmd]") {
  check_all("program_gspmd", partitioned_like_xla, is_identical);
}

TEST_CASE("left to itself the partitioner never sends more than XLA", "[default]") {
  const MakePlan make = [](const std::string& path) { return partitioned(path, {}); };
  check_all("program", make, [](const ProgramAgreement& found) {
    return found.agreement != Agreement::failed && found.bytes <= found.expected_bytes;
  });
}

}  // namespace shardsim::test
