// Steps of real models (tests/golden/xla_models): memory per device of what the partitioner makes
// of them, beside what XLA's TPU and GPU compilers allocated.
//
// Arguments are to be exact for every record. The peak is an estimate: the median of its error over
// the records is held, and how often the verdict whether the program fits is the compiler's.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/json_reader.hpp"
#include "spmd/memory/device_memory.hpp"
#include "spmd/partition.hpp"
#include "spmd/propagation/prepare.hpp"
#include "spmd/propagation/propagate.hpp"

namespace {
using namespace shardsim;  // NOLINT(google-build-using-namespace)

constexpr double largest_median_error = 0.10;
constexpr std::int64_t most_bytes = std::int64_t{1} << 50;

std::filesystem::path golden_folder() {
  const char* set = std::getenv("SHARDSIM_GOLDEN_DIR");
  return std::filesystem::path(set != nullptr ? set : SHARDSIM_SOURCE_DIR "/tests/golden") /
         "xla_models";
}

// What a program may take: README.md there.
Bytes capacity(const JsonReader& record) {
  if (const auto bytes = record.find("device_memory_bytes")) {
    return Bytes(bytes->integer(0, most_bytes));
  }
  const std::map<std::string, std::int64_t> tpu{
      {"v5e", 16911433728}, {"v6e", 33543694581}, {"v5p", 102789304811}};
  return Bytes(tpu.at(record.at("target").at("chip").string()));
}

spmd::DeviceMemory memory_of(const std::string& program, spmd::MemoryTarget target) {
  stablehlo::Module module = spmd::prepare(stablehlo::read_module(program));
  spmd::propagate(module);
  return spmd::device_memory(spmd::partition(module, {.like_xla = true}), target);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Outcome {
  std::map<std::string, std::vector<double>> errors;  // by target and step
  int records = 0;
  int wrong_arguments = 0;
  int wrong_verdicts = 0;
};

void compare(const std::filesystem::path& file, Outcome& outcome) {
  const Json document = load_json(file.string());
  const JsonReader record(document, {file.string(), ""});
  const std::string platform = record.at("target").at("platform").string();
  const auto program = golden_folder() / "programs" / (file.stem().string() + ".mlir.gz");
  const spmd::DeviceMemory memory = memory_of(
      program.string(), platform == "tpu" ? spmd::MemoryTarget::tpu : spmd::MemoryTarget::gpu);

  const Bytes arguments(record.at("argument_check").at("compiler").integer(0, most_bytes));
  const Bytes peak(record.at("peak_bytes").at("total").integer(0, most_bytes));
  const bool fits = record.at("fits").boolean();
  const double error = static_cast<double>(memory.peak.count()) / static_cast<double>(peak.count());
  const bool verdict = memory.peak <= capacity(record);
  std::cout << fmt::format("{:+7.1f} %  {:9.1f} of {:9.1f} MiB{}{}  {}\n", 100 * (error - 1),
                           static_cast<double>(memory.peak.count()) / static_cast<double>(MiB),
                           static_cast<double>(peak.count()) / static_cast<double>(MiB),
                           memory.arguments == arguments ? "" : "  arguments differ",
                           verdict == fits ? "" : "  verdict differs", record.at("id").string());
  ++outcome.records;
  if (memory.arguments != arguments) ++outcome.wrong_arguments;
  if (verdict != fits) ++outcome.wrong_verdicts;
  for (const std::string& key : {std::string("all"), platform + " " + record.at("step").string()}) {
    outcome.errors[key].push_back(std::abs(error - 1));
  }
}

}  // namespace

TEST_CASE("memory per device is XLA's: arguments exactly, the peak nearly") {
  const std::filesystem::path folder = golden_folder() / "records";
  if (!std::filesystem::exists(folder)) {
    std::cout << folder.string() << ": not there, skipped\n";
    return;
  }
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  Outcome outcome;
  for (const auto& file : files) compare(file, outcome);
  for (const auto& [key, errors] : outcome.errors) {
    const auto near =
        std::count_if(errors.begin(), errors.end(), [](double error) { return error <= 0.1; });
    std::cout << fmt::format("{}: {} records, median error of the peak {:.1f} %, {} within 10 %\n",
                             key, errors.size(), 100 * median(errors), near);
  }
  std::cout << fmt::format("{}: {} passed, {} failed; {} of {} verdicts differ\n", folder.string(),
                           outcome.records - outcome.wrong_arguments, outcome.wrong_arguments,
                           outcome.wrong_verdicts, outcome.records);
  REQUIRE(outcome.records > 0);
  CHECK(outcome.wrong_arguments == 0);
  CHECK(median(outcome.errors.at("all")) <= largest_median_error);
}
