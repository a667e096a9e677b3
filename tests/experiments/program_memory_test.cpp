// `run --program` gives the memory that docs/accuracy-memory.md puts beside XLA's: for one step of
// every kind and chip of tests/golden/xla_models the peak and the verdict are those of
// memory_comparison.hpp, which are compared with the compiler's.
#include <catch2/catch.hpp>
#include <map>

#include "base/json.hpp"
#include "experiments/experiment.hpp"
#include "tests/base/golden_files.hpp"
#include "tests/spmd/memory_comparison.hpp"

namespace shardsim::test {
namespace {

const std::map<std::string, std::string> machines{{"h100", "dgx-h100"},
                                                  {"a100", "dgx-a100"},
                                                  {"v5e", "tpu-v5e"},
                                                  {"v5p", "tpu-v5p"},
                                                  {"v6e", "tpu-v6e"}};

// The first record of each step and chip.
std::map<std::string, std::string> some_records() {
  std::map<std::string, std::string> records;
  for (const std::string& file : golden_files(golden_folder("xla_models") / "records", ".json")) {
    const Json record = load_json(file);
    const JsonReader json(record, {file, ""});
    records.emplace(json.at("step").string() + " " + json.at("target").at("chip").string(), file);
  }
  return records;
}

Prediction predict_program(const std::string& record, const std::string& chip) {
  const Json document{
      {"program", memory_program(record)}, {"like", "xla"}, {"machine", machines.at(chip)}};
  return predict(read_experiments(document, "test.json").at(0), {});
}

}  // namespace

TEST_CASE("run --program needs the memory that is compared with the compiler's") {
  const auto records = some_records();
  REQUIRE(records.size() >= 5);
  for (const auto& [what, file] : records) {
    INFO(what << ": " << file);
    const MemoryComparison compared = compare_memory(file);
    const Prediction prediction = predict_program(file, compared.chip);
    CHECK(prediction.result.peak() == compared.peak);
    CHECK(prediction.result.fits() == compared.fits);
  }
}

}  // namespace shardsim::test
