// Runs tests/golden/xla_cost/*.json, or those of SHARDSIM_GOLDEN_DIR: XLA's SOL estimates, to a
// billionth of the formula's value, and, but for all-to-alls, whose test is older than their
// formula, to the whole microseconds that XLA's test expects.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "base/json.hpp"
#include "sim/collectives/xla_sol.hpp"
#include "tests/base/golden_files.hpp"

namespace shardsim {
namespace {

constexpr double tolerance = 1e-9;
constexpr std::int64_t most_count = std::int64_t{1} << 40;

XlaSolConfig config_of(const JsonReader& json) {
  return {
      Seconds(json.at("launch_us").number() * 1e-6), Bandwidth(json.at("nic_GBps").number() * 1e9),
      Seconds(json.at("chunk_prep_us").number() * 1e-6), Seconds(json.at("rtt_us").number() * 1e-6),
      Bytes(json.at("chunk_bytes").integer(1, most_count))};
}

XlaSolRequest request_of(const JsonReader& record, std::int64_t gpus_per_node) {
  const std::string name =
      record.at("collective")
          .choice({"all_gather", "all_reduce", "reduce_scatter", "send_recv", "all_to_all"});
  XlaSolRequest request;
  request.bytes = Bytes(record.at("bytes").integer(1, most_count));
  request.nodes = record.at("num_nodes").integer(1, 1 << 20);
  request.members = request.nodes * gpus_per_node;
  if (name == "all_gather") request.kind = CollectiveKind::all_gather;
  if (name == "reduce_scatter") request.kind = CollectiveKind::reduce_scatter;
  if (name == "all_to_all") request.kind = CollectiveKind::all_to_all;
  if (name == "send_recv") {
    request.kind = CollectiveKind::collective_permute;
    request.members = 2;
  }
  return request;
}

// What is wrong; empty when nothing is.
std::string complaint(const JsonReader& record, double actual) {
  const auto newer = record.find("newer_formula_us");
  const double expected = newer ? newer->number() : record.at("formula_us").number();
  if (std::abs(actual - expected) > tolerance * expected) {
    return fmt::format("expected {} us, actual {} us", expected, actual);
  }
  const double whole = record.at("expected_us_truncated").number();
  if (!newer && std::trunc(actual) != whole) {
    return fmt::format("XLA's test expects {} us, actual {} us", whole, actual);
  }
  return "";
}

}  // namespace

TEST_CASE("XLA's SOL estimates", "[golden]") {
  for (const std::string& file : test::golden_files(test::golden_folder("xla_cost"), ".json")) {
    const Json document = load_json(file);
    const JsonReader reader(document, {file, ""});
    const XlaSolConfig config = config_of(reader.at("config"));
    const std::int64_t gpus_per_node = reader.at("config").at("gpus_per_node").integer(1, 1024);
    test::Comparison comparison;
    for (const JsonReader& record : reader.at("cases").elements()) {
      const XlaSolRequest request = request_of(record, gpus_per_node);
      const std::string wrong = complaint(record, xla_sol_estimate(config, request).count() * 1e6);
      if (wrong.empty()) {
        ++comparison.passed;
      } else {
        comparison.failures.push_back(fmt::format(
            "{} on {} nodes: {}", record.at("collective").string(), request.nodes, wrong));
      }
    }
    test::report(file, comparison);
    CHECK(comparison.failures.empty());
    CHECK(comparison.passed > 0);
  }
}

}  // namespace shardsim
