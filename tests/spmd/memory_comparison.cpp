#include "tests/spmd/memory_comparison.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "base/json.hpp"
#include "spmd/memory/device_memory.hpp"
#include "spmd/partition.hpp"
#include "spmd/propagation/prepare.hpp"
#include "spmd/propagation/propagate.hpp"

namespace shardsim::test {
namespace {

constexpr std::int64_t most_bytes = std::int64_t{1} << 50;

// What a program may take: README.md of the golden folder.
Bytes capacity(const JsonReader& record) {
  if (const auto bytes = record.find("device_memory_bytes")) {
    return Bytes(bytes->integer(0, most_bytes));
  }
  const std::map<std::string, std::int64_t> tpu{
      {"v5e", 16911433728}, {"v6e", 33543694581}, {"v5p", 102789304811}};
  return Bytes(tpu.at(record.at("target").at("chip").string()));
}

spmd::DeviceMemory memory_of(const std::string& program, spmd::MemoryTarget target,
                             Bytes available) {
  stablehlo::Module module = spmd::prepare(stablehlo::read_module(program));
  spmd::propagate(module);
  return spmd::device_memory(spmd::partition(module, {.like_xla = true}), target, available);
}

}  // namespace

double MemoryComparison::error() const {
  return static_cast<double>(peak.count()) / static_cast<double>(expected_peak.count()) - 1;
}

std::string memory_program(const std::string& record) {
  const std::filesystem::path path(record);
  return path.parent_path().parent_path() / "programs" / (path.stem().string() + ".mlir.gz");
}

MemoryComparison compare_memory(const std::string& record) {
  const Json document = load_json(record);
  const JsonReader json(document, {record, ""});
  MemoryComparison found;
  found.id = json.at("id").string();
  found.model = json.at("model").string();
  found.step = json.at("step").string();
  found.platform = json.at("target").at("platform").string();
  found.chip = json.at("target").at("chip").string();
  const spmd::DeviceMemory memory = memory_of(
      memory_program(record),
      found.platform == "tpu" ? spmd::MemoryTarget::tpu : spmd::MemoryTarget::gpu, capacity(json));
  found.arguments = memory.arguments;
  found.peak = memory.peak;
  found.fits = memory.peak <= capacity(json);
  found.expected_arguments = Bytes(json.at("argument_check").at("compiler").integer(0, most_bytes));
  found.expected_peak = Bytes(json.at("peak_bytes").at("total").integer(0, most_bytes));
  found.expected_fits = json.at("fits").boolean();
  return found;
}

double median_error(const std::vector<MemoryComparison>& all) {
  std::vector<double> errors;
  for (const MemoryComparison& one : all) errors.push_back(std::abs(one.error()));
  std::sort(errors.begin(), errors.end());
  return errors.at(errors.size() / 2);
}

int count_within(const std::vector<MemoryComparison>& all, double error) {
  return static_cast<int>(std::count_if(
      all.begin(), all.end(), [&](const auto& one) { return std::abs(one.error()) <= error; }));
}

}  // namespace shardsim::test
