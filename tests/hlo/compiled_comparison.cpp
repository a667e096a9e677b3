#include "tests/hlo/compiled_comparison.hpp"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "base/gzip.hpp"
#include "hlo/cost.hpp"
#include "hlo/memory.hpp"
#include "hlo/to_plan.hpp"
#include "tests/plan/golden_collectives.hpp"

namespace shardsim::test {
namespace {

constexpr std::int64_t most_bytes = std::int64_t{1} << 50;
constexpr double operations_tolerance = 0.01;

HloModule read_module(const std::filesystem::path& path) {
  return HloModule::parse(read_maybe_gzip(path.string()), path.string());
}

std::string collective_difference(const HloModule& module, const Mesh& mesh,
                                  const JsonReader& collectives) {
  return difference(expected_collectives(collectives),
                    actual_collectives(plan_from_hlo(module, {mesh})));
}

// Of each target the compiled text, where it is there.
template <class F>
void for_each_target(const JsonReader& record, const std::filesystem::path& folder, const F& use) {
  for (const char* target : {"tpu_v5e", "gpu_h100", "cpu"}) {
    const auto expected = record.find(target);
    if (!expected) continue;
    const std::string file = expected->at("compiled").string();
    if (std::filesystem::exists(folder / file)) use(file, read_module(folder / file), *expected);
  }
}

std::string memory_difference(const HloModule& module, const JsonReader& expected) {
  const HloMemory memory = entry_memory(module);
  std::string text;
  const auto compare = [&](const char* what, const char* field, Bytes bytes) {
    const std::int64_t wanted = expected.at(field).integer(0, most_bytes);
    if (wanted != bytes.count()) {
      text += fmt::format("    {}: expected {} bytes, read {}\n", what, wanted, bytes.count());
    }
  };
  compare("arguments", "argument_size_in_bytes", memory.argument);
  compare("results", "output_size_in_bytes", memory.output);
  compare("aliased", "alias_size_in_bytes", memory.alias);
  return text;
}

}  // namespace

FileComparisons compare_compiled_collectives(const JsonReader& record,
                                             const std::filesystem::path& folder) {
  FileComparisons found;
  const Mesh mesh = golden_mesh(record.at("mesh"));
  for_each_target(record, folder, [&](const auto& file, const auto& module, const auto& expected) {
    found.push_back({file, collective_difference(module, mesh, expected.at("collectives"))});
  });
  return found;
}

FileComparisons compare_partitioned_collectives(const JsonReader& record,
                                                const std::filesystem::path& folder) {
  const auto file = record.find("spmd");
  if (!file || !std::filesystem::exists(folder / file->string())) return {};
  return {{file->string(),
           collective_difference(read_module(folder / file->string()),
                                 golden_mesh(record.at("mesh")), record.at("collectives"))}};
}

FileComparisons compare_compiled_memory(const JsonReader& record,
                                        const std::filesystem::path& folder) {
  FileComparisons found;
  for_each_target(record, folder, [&](const auto& file, const auto& module, const auto& expected) {
    found.push_back({file, memory_difference(module, expected.at("memory"))});
  });
  return found;
}

FileComparisons compare_compiled_operations(const JsonReader& record,
                                            const std::filesystem::path& folder) {
  FileComparisons found;
  for_each_target(record, folder, [&](const auto& file, const auto& module, const auto& expected) {
    const auto flops = expected.find("flops");
    if (!flops) return;
    HloCostModel costs(module);
    const double counted = costs.operations_of(module.entry()).flops.count();
    const double wanted = flops->number();
    const bool is_near = std::abs(counted - wanted) <= operations_tolerance * wanted;
    found.push_back(
        {file, is_near ? "" : fmt::format("    expected {}, counted {}\n", wanted, counted)});
  });
  return found;
}

std::vector<PeakComparison> compare_compiled_peaks(const JsonReader& record,
                                                   const std::filesystem::path& folder) {
  std::vector<PeakComparison> found;
  for_each_target(record, folder, [&](const auto& file, const auto& module, const auto& expected) {
    const JsonReader memory = expected.at("memory");
    const auto bytes = [&](const char* field) { return memory.at(field).number(); };
    PeakComparison peak;
    peak.file = file;
    peak.expected = bytes("argument_size_in_bytes") + bytes("output_size_in_bytes") -
                    bytes("alias_size_in_bytes") + bytes("temp_size_in_bytes");
    const Plan plan = plan_from_hlo(module, {});
    for (const Buffer& buffer : plan.programs.at(0).buffers) {
      peak.actual += static_cast<double>(buffer.bytes.count());
    }
    found.push_back(std::move(peak));
  });
  return found;
}

const std::map<std::string, std::string>& known_compiled_differences() {
  static const std::string condition =
      "An all-reduce stands in the condition of its loop. It runs; the reference counts bodies of "
      "loops only.";
  static const std::string window =
      "The maximum and the sum of a softmax are windows that cover the row: XLA's analysis counts "
      "about one operation per row, shardsim one per element.";
  static const std::map<std::string, std::string> reasons{
      {"collectives compiled/while_dynamic.tpu_v5e.hlo.gz", condition},
      {"collectives compiled/while_dynamic.gpu_h100.hlo.gz", condition},
      {"partitioned spmd/while_dynamic.hlo.gz", condition},
      {"operations compiled/softmax_batch.tpu_v5e.hlo.gz", window},
      {"operations compiled/softmax_seq.tpu_v5e.hlo.gz", window},
      {"operations compiled/shape_topk_sharded_dim.tpu_v5e.hlo.gz",
       "XLA gives its TopK call operations, shardsim only bytes."}};
  return reasons;
}

}  // namespace shardsim::test
