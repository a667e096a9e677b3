// Programs compiled by XLA for TPU v5e and H100, and their HLO directly after partitioning, against
// what XLA says about them: collectives, memory of arguments and results, operations.
//
// The cases were made with jax 0.10.2 ahead of time for devices that need not be there
// (jax.experimental.topologies); tests/golden/xla/compiled/README.md says how to read them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <set>

#include "base/gzip.hpp"
#include "base/json.hpp"
#include "hlo/cost.hpp"
#include "hlo/memory.hpp"
#include "hlo/replica_groups.hpp"
#include "hlo/to_plan.hpp"

namespace shardsim {
namespace {

// What was compiled for TPU and GPU, of which there is a larger set, and for CPU.
std::vector<std::filesystem::path> golden_folders() {
  const std::filesystem::path own = SHARDSIM_SOURCE_DIR "/tests/golden";
  const char* set = std::getenv("SHARDSIM_GOLDEN_DIR");
  return {(set != nullptr ? std::filesystem::path(set) : own) / "xla", own / "xla_cpu"};
}

Mesh read_mesh_pairs(const JsonReader& json) {
  std::vector<MeshAxis> axes;
  for (const JsonReader& pair : json.elements()) {
    axes.push_back({pair.elements().at(0).string(), pair.elements().at(1).integer(1, 1 << 20)});
  }
  return Mesh(std::move(axes));
}

// A collective without its count, as text; the counts of equal ones add up.
using Counts = std::map<std::string, std::int64_t>;

std::string key(std::string_view kind, const std::string& where, DType dtype,
                std::int64_t payload) {
  return fmt::format("{} {} {} {}", kind, where, name_of(dtype), payload);
}

bool moves_nothing(const DevicePairs& pairs) {
  return std::all_of(pairs.begin(), pairs.end(),
                     [](const auto& pair) { return pair.first == pair.second; });
}

Counts expected_counts(const JsonReader& collectives) {
  Counts counts;
  for (const JsonReader& row : collectives.elements()) {
    std::string where;
    if (row.json().contains("source_target_pairs")) {
      DevicePairs pairs;
      for (const JsonReader& pair : row.at("source_target_pairs").elements()) {
        pairs.emplace_back(pair.elements().at(0).integer(0, 1 << 20),
                           pair.elements().at(1).integer(0, 1 << 20));
      }
      if (moves_nothing(pairs)) continue;
      std::sort(pairs.begin(), pairs.end());
      where = fmt::format("{}", pairs);
    } else if (const auto axes = row.find("axes")) {
      for (const JsonReader& axis : axes->elements()) where += axis.string() + ",";
    } else {
      where = row.at("groups").json().dump();
    }
    // A count of null: in a loop that nobody knows the length of, counted once here.
    const auto count = row.find("count");
    counts[key(row.at("kind").string(), where, *parse_dtype(row.at("dtype").string()),
               row.at("payload_bytes").integer(0, std::int64_t{1} << 50))] +=
        count ? count->integer(0, std::int64_t{1} << 40) : 1;
  }
  return counts;
}

Counts actual_counts(const Plan& plan) {
  Counts counts;
  const std::vector<std::int64_t> executed = executions(plan);
  for (std::size_t i = 0; i < plan.collectives.size(); ++i) {
    const Collective& collective = plan.collectives[i];
    std::string where;
    if (collective.kind == CollectiveKind::collective_permute) {
      if (moves_nothing(collective.source_targets)) continue;
      DevicePairs pairs = collective.source_targets;
      std::sort(pairs.begin(), pairs.end());
      where = fmt::format("{}", pairs);
    } else if (!collective.axes.empty()) {
      for (const std::string& axis : plan.mesh.names_of(collective.axes)) where += axis + ",";
    } else {
      where = Json(collective.groups).dump();
    }
    counts[key(name_of(collective.kind), where, collective.dtype, collective.payload.count())] +=
        executed[i];
  }
  return counts;
}

std::string difference(const Counts& expected, const Counts& actual) {
  std::string text;
  for (const auto& [what, count] : expected) {
    const auto found = actual.find(what);
    const std::int64_t got = found == actual.end() ? 0 : found->second;
    if (got != count) text += fmt::format("    {}: expected {} times, read {}\n", what, count, got);
  }
  for (const auto& [what, count] : actual) {
    if (expected.count(what) == 0)
      text += fmt::format("    {}: not expected, read {}\n", what, count);
  }
  return text;
}

HloModule read_module(const std::filesystem::path& path) {
  return HloModule::parse(read_maybe_gzip(path.string()), path.string());
}

std::string collective_failure(const HloModule& module, const Mesh& mesh,
                               const JsonReader& collectives) {
  const Plan plan = plan_from_hlo(module, {mesh});
  const Counts expected = expected_counts(collectives);
  return difference(expected, actual_counts(plan));
}

std::string memory_failure(const HloModule& module, const JsonReader& expected) {
  const HloMemory memory = entry_memory(module);
  std::string text;
  const auto compare = [&](const char* what, const char* field, Bytes bytes) {
    const std::int64_t wanted = expected.at(field).integer(0, std::int64_t{1} << 50);
    if (wanted != bytes.count()) {
      text += fmt::format("    {}: expected {} bytes, read {}\n", what, wanted, bytes.count());
    }
  };
  compare("arguments", "argument_size_in_bytes", memory.argument);
  compare("results", "output_size_in_bytes", memory.output);
  compare("aliased", "alias_size_in_bytes", memory.alias);
  return text;
}

std::string flops_failure(const HloModule& module, const JsonReader& target) {
  const auto flops = target.find("flops");
  if (!flops) return "";
  HloCostModel costs(module);
  const double counted = costs.operations_of(module.entry()).flops.count();
  const double wanted = flops->number();
  if (std::abs(counted - wanted) <= 0.01 * wanted) return "";
  return fmt::format("    operations: expected {}, counted {}\n", wanted, counted);
}

// Where the reference is not followed; docs/hlo-import.md says why.
const std::set<std::string> known_differences = {
    "collectives compiled/while_dynamic.tpu_v5e.hlo.gz",
    "collectives compiled/while_dynamic.gpu_h100.hlo.gz",
    "spmd spmd/while_dynamic.hlo.gz",
    "operations compiled/softmax_batch.tpu_v5e.hlo.gz",
    "operations compiled/softmax_seq.tpu_v5e.hlo.gz",
    "operations compiled/shape_topk_sharded_dim.tpu_v5e.hlo.gz"};

struct Tally {
  std::string what;
  std::filesystem::path folder;
  int unexpected = 0;
  int passed = 0;
  int failed = 0;
  std::string report;

  void add(const std::string& name, const std::string& failure) {
    ++(failure.empty() ? passed : failed);
    if (failure.empty()) return;
    const bool known = known_differences.count(what + " " + name) > 0;
    unexpected += known ? 0 : 1;
    report += fmt::format("  {}{}\n{}", name, known ? " (known)" : "", failure);
  }
};

using Check = std::function<void(const JsonReader& record, Tally& tally)>;

int run_folder(const std::filesystem::path& folder, const char* what, const Check& check) {
  if (!std::filesystem::exists(folder / "expected")) {
    std::cout << folder.string() << ": not there, skipped\n";
    return 0;
  }
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "expected")) {
    if (entry.path().extension() == ".json") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  int unexpected = 0;
  for (const std::string& file : files) {
    const Json document = load_json(file);
    Tally tally;
    tally.what = what;
    tally.folder = folder;
    for (const JsonReader& record : JsonReader(document, {file, ""}).elements()) {
      check(record, tally);
    }
    std::cout << std::filesystem::path(file).filename().string() << " " << what << ": "
              << tally.passed << " passed, " << tally.failed << " failed\n"
              << tally.report;
    unexpected += tally.unexpected;
  }
  return unexpected;
}

// Runs the check on every record of every file; answers how many failed that should not.
int run_all(const char* what, const Check& check) {
  int unexpected = 0;
  for (const auto& folder : golden_folders()) unexpected += run_folder(folder, what, check);
  return unexpected;
}

const std::vector<std::string> targets = {"tpu_v5e", "gpu_h100", "cpu"};

template <class F>
void for_each_target(const JsonReader& record, Tally& tally, const F& failure) {
  for (const std::string& target : targets) {
    const auto expected = record.find(target);
    if (!expected) continue;
    const std::string file = expected->at("compiled").string();
    // Programs of which a selection lies in the repository lack some files.
    if (!std::filesystem::exists(tally.folder / file)) continue;
    tally.add(file, failure(read_module(tally.folder / file), *expected));
  }
}

}  // namespace

TEST_CASE("collectives of compiled modules are those that XLA made") {
  CHECK(run_all("collectives", [](const JsonReader& record, Tally& tally) {
          const Mesh mesh = read_mesh_pairs(record.at("mesh"));
          for_each_target(record, tally, [&](const HloModule& module, const JsonReader& expected) {
            return collective_failure(module, mesh, expected.at("collectives"));
          });
        }) == 0);
}

TEST_CASE("collectives of partitioned modules are those of XLA's partitioner") {
  CHECK(run_all("spmd", [](const JsonReader& record, Tally& tally) {
          const auto file = record.find("spmd");
          if (!file || !std::filesystem::exists(tally.folder / file->string())) return;
          const HloModule module = read_module(tally.folder / file->string());
          tally.add(file->string(), collective_failure(module, read_mesh_pairs(record.at("mesh")),
                                                       record.at("collectives")));
        }) == 0);
}

TEST_CASE("arguments, results and aliases have the bytes that the compiler gave them") {
  CHECK(run_all("memory", [](const JsonReader& record, Tally& tally) {
          for_each_target(record, tally, [](const HloModule& module, const JsonReader& expected) {
            return memory_failure(module, expected.at("memory"));
          });
        }) == 0);
}

// The compiler's own sum, argument + output - alias + temp, of which temp is estimated.
TEST_CASE("peak memory is within 5 percent of the compiler's in the median") {
  std::vector<double> errors;
  CHECK(run_all("peak", [&](const JsonReader& record, Tally& tally) {
          for_each_target(record, tally, [&](const HloModule& module, const JsonReader& expected) {
            const JsonReader memory = expected.at("memory");
            const auto bytes = [&](const char* field) { return memory.at(field).number(); };
            const double wanted = bytes("argument_size_in_bytes") + bytes("output_size_in_bytes") -
                                  bytes("alias_size_in_bytes") + bytes("temp_size_in_bytes");
            double held = 0;
            const Plan plan = plan_from_hlo(module, {});
            for (const Buffer& buffer : plan.programs.at(0).buffers) {
              held += static_cast<double>(buffer.bytes.count());
            }
            errors.push_back(std::abs(held - wanted) / wanted);
            return errors.back() <= 0.05
                       ? std::string()
                       : fmt::format("    expected {} bytes, held {}\n", wanted, held);
          });
        }) >= 0);
  if (errors.empty()) return;
  std::sort(errors.begin(), errors.end());
  const double median = errors[errors.size() / 2];
  std::cout << fmt::format("peak memory: median error {:.3f} %\n", 100 * median);
  CHECK(median <= 0.05);
}

TEST_CASE("operations agree with XLA's cost analysis to one percent") {
  CHECK(run_all("operations", [](const JsonReader& record, Tally& tally) {
          for_each_target(record, tally, [](const HloModule& module, const JsonReader& expected) {
            return flops_failure(module, expected);
          });
        }) == 0);
}

}  // namespace shardsim
