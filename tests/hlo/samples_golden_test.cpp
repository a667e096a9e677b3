// Facts about public HLO texts (MaxText, openxla/xla, jax issues, the scaling book), each with its
// source in hlo_samples.json, held by texts of our own with the same facts: golden/hlo/ID.hlo, or
// ID.txt for an assignment of buffers.
//
// Every fact of a collective must be true of one collective instruction, and of another one for
// each. What XLA's latency estimator says of some is no fact about the text and not looked at.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <set>

#include "base/gzip.hpp"
#include "base/index.hpp"
#include "base/json.hpp"
#include "hlo/buffer_assignment.hpp"
#include "hlo/collectives.hpp"
#include "hlo/to_plan.hpp"

namespace shardsim {
namespace {

// A collective instruction, what the plan made of it, and how often a step executes it.
struct Found {
  HloId id = 0;
  Collective planned;
  std::int64_t executions = 0;
  HloCollective read;
};

class Sample {
 public:
  explicit Sample(const std::string& path)
      : module_(HloModule::parse(read_maybe_gzip(path), path)), plan_(plan_from_hlo(module_, {})) {
    std::map<std::string_view, HloId> by_name;
    for (HloId id = 0; id < static_cast<HloId>(module_.instructions().size()); ++id) {
      by_name[module_.instruction(id).name] = id;
    }
    std::map<HloId, Found> all;
    for (const Task& task : plan_.programs.at(0).tasks) {
      if (task.kind != TaskKind::collective) continue;
      const HloId id = by_name.at(plan_.names[at(task.name)]);
      Found& found = all[id];
      found.planned = plan_.collectives[at(task.work)];
      ++found.executions;
    }
    for (auto& [id, found] : all) {
      found.id = id;
      found.read = read_collective(module_, id, devices_of(module_));
      found_.push_back(std::move(found));
    }
  }

  [[nodiscard]] const std::vector<Found>& found() const { return found_; }

  // What is not true of it; empty when all is.
  [[nodiscard]] std::string failure(const Found& found, const JsonReader& facts) const {
    for (const auto& [name, fact] : facts.members()) {
      if (!holds(found, name, fact)) return fmt::format("{} is not {}", name, fact.json().dump());
    }
    return "";
  }

 private:
  [[nodiscard]] std::int64_t group_of(const Found& found) const {
    return group_size(plan_, found.planned);
  }

  [[nodiscard]] DeviceGroups groups_of(const Found& found) const {
    DeviceGroups groups =
        found.planned.axes.empty() ? found.planned.groups : plan_.mesh.groups(found.planned.axes);
    std::sort(groups.begin(), groups.end());
    return groups;
  }

  [[nodiscard]] HloShape result_of(const Found& found) const {
    HloShape shape = module_.shape(found.id);
    return shape.is_tuple ? shape.elements.back() : shape;
  }

  [[nodiscard]] std::int64_t result_bytes(const Found& found) const {
    const std::int64_t payload = found.planned.payload.count();
    return found.planned.kind == CollectiveKind::reduce_scatter ? payload / group_of(found)
                                                                : payload;
  }

  [[nodiscard]] std::int64_t operand_bytes(const Found& found) const {
    const std::int64_t payload = found.planned.payload.count();
    return found.planned.kind == CollectiveKind::all_gather ? payload / group_of(found) : payload;
  }

  [[nodiscard]] bool starts_as(const Found& found, const std::string& form) const {
    if (form.rfind(module_.instruction(found.id).opcode, 0) == 0) return true;
    for (HloId id = 0; id < static_cast<HloId>(module_.instructions().size()); ++id) {
      if (module_.instruction(id).opcode != "async-start") continue;
      const HloComputation& called = module_.computation(module_.callee(id, "calls"));
      if (called.first <= found.id && found.id < called.end)
        return form.rfind("async-start", 0) == 0;
    }
    return false;
  }

  [[nodiscard]] bool holds(const Found& found, const std::string& name,
                           const JsonReader& fact) const {
    const Json& json = fact.json();
    const auto is = [&](std::int64_t value) { return json == value; };
    const std::int64_t channel = channel_of(module_, found.id);
    if (name == "op") {
      return json == "(any)" || json == name_of(found.planned.kind) ||
             json == *collective_opcode(module_.instruction(found.id).opcode);
    }
    if (name == "dtype") return parse_dtype(fact.string()) == found.planned.dtype;
    if (name == "shape_out") return json == Json(result_of(found).dims);
    if (name == "dim") {
      return module_.attribute(found.id, "dimensions") == fmt::format("{{{}}}", json.dump());
    }
    if (name == "bytes_out") return is(result_bytes(found));
    if (name == "bytes_in") return is(operand_bytes(found));
    if (name == "bytes_per_device" || name == "bytes_upper_bound") {
      return is(found.planned.payload.count());
    }
    if (name == "total_bytes_per_device") {
      return is(found.planned.payload.count() * found.executions);
    }
    if (name == "executions") return is(found.executions);
    if (name == "group_size" || name == "group_size_inferred") return is(group_of(found));
    if (name == "num_groups") return is(static_cast<std::int64_t>(groups_of(found).size()));
    if (name == "groups") {
      DeviceGroups groups = json.get<DeviceGroups>();
      std::sort(groups.begin(), groups.end());
      return groups == groups_of(found) &&
             (groups[0].size() > 1 ||
              wire_bytes_per_device(found.planned.kind, 1, found.planned.payload) == Bytes(0));
    }
    if (name == "source_target_pairs") {
      return json.get<DevicePairs>() == found.planned.source_targets;
    }
    if (name == "channel_id") return is(channel);
    if (name == "channel_ids") return std::find(json.begin(), json.end(), channel) != json.end();
    if (name == "replica_groups_text") {
      return json == std::string(module_.attribute(found.id, "replica_groups"));
    }
    if (name == "async_form") return starts_as(found, fact.string());
    fact.fail("a fact that this test does not know");
  }

  HloModule module_;
  Plan plan_;
  std::vector<Found> found_;
};

// One line per fact that is not held.
std::string check_collectives(const Sample& sample, const JsonReader& expected) {
  std::string failures;
  std::set<HloId> used;
  for (const JsonReader& facts : expected.at("collectives").elements()) {
    const Json& channels =
        facts.json().contains("channel_ids") ? facts.json()["channel_ids"] : Json();
    const std::size_t wanted = std::max<std::size_t>(channels.size(), 1);
    std::string why = "no collective is left";
    std::size_t held = 0;
    for (const Found& found : sample.found()) {
      if (held == wanted || used.count(found.id) > 0) continue;
      const std::string failure = sample.failure(found, facts);
      if (failure.empty()) {
        used.insert(found.id);
        ++held;
      } else {
        why = failure;
      }
    }
    if (held < wanted) failures += fmt::format("    {}: {}\n", facts.json().dump(), why);
  }
  return failures;
}

std::string check_sums(const Sample& sample, const JsonReader& expected) {
  std::string failures;
  if (const auto total = expected.find("total_bytes_out")) {
    std::int64_t sum = 0;
    for (const Found& found : sample.found()) sum += found.planned.payload.count();
    if (total->json() != sum) failures += fmt::format("    gathered {} bytes\n", sum);
  }
  if (const auto trips = expected.find("while_trip_count_expected")) {
    for (const Found& found : sample.found()) {
      if (trips->json() != found.executions) {
        failures += fmt::format("    executed {} times\n", found.executions);
      }
    }
  }
  return failures;
}

std::string check_memory(const BufferAssignment& assignment, const JsonReader& memory) {
  const bool same = memory.at("temp_bytes").json() == assignment.temporaries().count() &&
                    memory.at("total_bytes").json() == assignment.peak().count();
  return same ? ""
              : fmt::format("    temporaries {}, in all {}\n", assignment.temporaries().count(),
                            assignment.peak().count());
}

// Of a program, or of what the compiler printed about its buffers.
std::string failures_of(const std::string& path, const JsonReader& expected) {
  if (const auto memory = expected.find("memory")) {
    return check_memory(parse_buffer_assignment(read_maybe_gzip(path + ".txt"), path), *memory);
  }
  const Sample sample(path + ".hlo");
  return check_collectives(sample, expected) + check_sums(sample, expected);
}

}  // namespace

TEST_CASE("public HLO texts hold what they are known to hold") {
  const std::string own = SHARDSIM_SOURCE_DIR "/tests/golden";
  const char* set = std::getenv("SHARDSIM_GOLDEN_DIR");
  const std::string file = (set != nullptr ? std::string(set) : own) + "/hlo_samples.json";
  const Json document = load_json(file);
  int passed = 0;
  std::string report;
  for (const JsonReader& record : JsonReader(document, {file, ""}).at("samples").elements()) {
    const std::string id = record.at("id").string();
    const std::string failures = failures_of(own + "/hlo/" + id, record.at("expected"));
    passed += failures.empty() ? 1 : 0;
    if (!failures.empty()) report += fmt::format("  {}\n{}", id, failures);
  }
  const auto all = static_cast<int>(document["samples"].size());
  std::cout << fmt::format("hlo_samples.json: {} passed, {} failed\n{}", passed, all - passed,
                           report);
  CHECK(passed == all);
}

}  // namespace shardsim
