// Runs tests/golden/nccl_tuner/*.json, or those of SHARDSIM_GOLDEN_DIR: NCCL's own prints of its
// tuner and of its choices against ours, from the number of GPUs on.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "nccl_machines.hpp"
#include "sim/nccl/selection.hpp"
#include "tests/base/golden_files.hpp"

namespace shardsim {
namespace {

using nccl::Estimate;
using nccl::Operation;

constexpr double tolerance = 0.01;
constexpr double half_a_digit = 0.05;  // printed with one decimal

bool close(double ours, double printed) {
  return std::abs(ours - printed) <= tolerance * printed + half_a_digit;
}

Operation operation_of(const std::string& name) {
  for (int o = 0; o < nccl::operations; ++o) {
    const auto operation = static_cast<Operation>(o);
    if (nccl::name_of(operation) == name) return operation;
  }
  FAIL("unknown operation " << name);
  return Operation::all_reduce;
}

// What is wrong with our row for a printed one; empty when nothing is. Takes the row out of `ours`.
std::string complaint(std::vector<Estimate>& ours, const JsonReader& row) {
  const auto algorithm = nccl::parse_algorithm(row.at("algorithm").string(), row.place());
  const auto protocol = nccl::parse_protocol(row.at("protocol").string(), row.place());
  const auto found = std::find_if(ours.begin(), ours.end(), [&](const Estimate& estimate) {
    return estimate.algorithm == algorithm && estimate.protocol == protocol;
  });
  if (found == ours.end()) return "printed, but disabled here";
  const double latency = found->latency.count() * 1e6;
  const double bandwidth = found->bandwidth.count() / 1e9;
  ours.erase(found);
  const double printed_latency = row.at("latency_us").number();
  const double printed_bandwidth = row.at("bandwidth_GBps").number();
  if (close(latency, printed_latency) && close(bandwidth, printed_bandwidth)) return "";
  return fmt::format("printed {} us, {} GB/s, actual {:.2f} us, {:.2f} GB/s", printed_latency,
                     printed_bandwidth, latency, bandwidth);
}

// What is wrong with our choice where NCCL logged its own; empty when nothing is.
std::string other_choice(const nccl::Communicator& communicator, const JsonReader& logged) {
  nccl::Request request;
  request.operation = operation_of(logged.at("operation").string());
  request.bytes = Bytes(logged.at("bytes").integer(0, 8 * GiB));
  const nccl::Candidate choice = nccl::select(communicator, request, logged.place()).choice();
  const std::string algorithm = logged.at("algorithm").string();
  const std::string protocol = logged.at("protocol").string();
  if (nccl::name_of(choice.algorithm) == algorithm && nccl::name_of(choice.protocol) == protocol) {
    return "";
  }
  return fmt::format("{} of {} bytes: NCCL chose {} {}, actual {} {}",
                     nccl::name_of(request.operation), request.bytes.count(), algorithm, protocol,
                     nccl::name_of(choice.algorithm), nccl::name_of(choice.protocol));
}

void compare(const JsonReader& record, test::Comparison& comparison) {
  const std::int64_t gpus = record.at("gpus").integer(2, 8);
  REQUIRE(record.at("device").string() == "H100 SXM5");
  REQUIRE(record.at("nccl").string() == "2.29.2");
  const nccl::Communicator communicator = testing::h100_communicator(gpus, 1, nccl::Version::v2_29);
  CHECK(communicator.ring_channels == record.at("channels").integer(1, 64));
  std::map<Operation, std::vector<Estimate>> ours;
  for (int o = 0; o < nccl::operations; ++o) {
    const auto operation = static_cast<Operation>(o);
    ours[operation] = nccl::tuning_table(communicator, operation);
  }
  for (const JsonReader& row : record.at("table").elements()) {
    const std::string name = row.at("operation").string();
    const std::string wrong = complaint(ours[operation_of(name)], row);
    if (wrong.empty()) {
      ++comparison.passed;
    } else {
      comparison.failures.push_back(fmt::format("{} GPUs, {}, {} {}: {}", gpus, name,
                                                row.at("algorithm").string(),
                                                row.at("protocol").string(), wrong));
    }
  }
  for (const JsonReader& logged : record.at("choices").elements()) {
    const std::string wrong = other_choice(communicator, logged);
    if (wrong.empty()) {
      ++comparison.passed;
    } else {
      comparison.failures.push_back(fmt::format("{} GPUs, {}", gpus, wrong));
    }
  }
  for (const auto& [operation, left] : ours) {
    for (const Estimate& estimate : left) {
      comparison.failures.push_back(fmt::format(
          "{} GPUs, {}, {} {}: enabled here, not printed", gpus, nccl::name_of(operation),
          nccl::name_of(estimate.algorithm), nccl::name_of(estimate.protocol)));
    }
  }
}

}  // namespace

TEST_CASE("the tuner's table and choices are what NCCL prints", "[golden]") {
  for (const auto& golden : test::golden_records(test::golden_folder("nccl_tuner"))) {
    test::Comparison comparison;
    for (const JsonReader& record : golden.records()) compare(record, comparison);
    test::report(golden.file, comparison);
    CHECK(comparison.failures.empty());
    CHECK(comparison.passed > 0);
  }
}

}  // namespace shardsim
