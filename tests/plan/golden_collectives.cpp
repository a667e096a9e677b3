#include "tests/plan/golden_collectives.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/json.hpp"
#include "plan/mesh_groups.hpp"

namespace shardsim::test {
namespace {

constexpr std::int64_t most_bytes = std::int64_t{1} << 50;
using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;

struct Entry {
  std::string kind;
  std::string where;
  std::string dtype;
  std::int64_t payload = 0;
  std::int64_t count = 0;
};

std::string text_of(Pairs pairs) {
  const bool still = std::all_of(pairs.begin(), pairs.end(),
                                 [](const auto& pair) { return pair.first == pair.second; });
  if (still) return "";
  std::sort(pairs.begin(), pairs.end());
  return fmt::format("{}", pairs);
}

std::vector<Entry> entries_of(const JsonReader& rows) {
  std::vector<Entry> entries;
  for (const JsonReader& row : rows.elements()) {
    Entry entry;
    entry.kind = row.at("kind").string();
    if (row.json().contains("source_target_pairs")) {
      Pairs pairs;
      for (const JsonReader& pair : row.at("source_target_pairs").elements()) {
        pairs.emplace_back(pair.elements().at(0).integer(0, 1 << 20),
                           pair.elements().at(1).integer(0, 1 << 20));
      }
      entry.where = text_of(std::move(pairs));
      if (entry.where.empty()) continue;
    } else if (const auto axes = row.find("axes")) {
      for (const JsonReader& axis : axes->elements()) entry.where += axis.string() + ",";
    } else {
      entry.where = row.at("groups").json().dump();
    }
    entry.dtype = name_of(*parse_dtype(row.at("dtype").string()));
    entry.payload = row.at("payload_bytes").integer(0, most_bytes);
    // A count of null: in a loop whose length nobody knows, counted once here.
    const auto count = row.find("count");
    entry.count = count ? count->integer(0, most_bytes) : 1;
    entries.push_back(std::move(entry));
  }
  return entries;
}

std::vector<Entry> entries_of(const Plan& plan) {
  std::vector<Entry> entries;
  const std::vector<std::int64_t> executed = executions(plan);
  for (std::size_t i = 0; i < plan.collectives.size(); ++i) {
    const Collective& collective = plan.collectives[i];
    Entry entry;
    entry.kind = name_of(collective.kind);
    if (collective.kind == CollectiveKind::collective_permute) {
      entry.where = text_of(collective.source_targets);
      if (entry.where.empty()) continue;
    } else if (!collective.axes.empty()) {
      for (const std::string& axis : plan.mesh.names_of(collective.axes)) entry.where += axis + ",";
    } else {
      entry.where = Json(collective.groups).dump();
    }
    entry.dtype = name_of(collective.dtype);
    entry.payload = collective.payload.count();
    entry.count = executed[i];
    entries.push_back(std::move(entry));
  }
  return entries;
}

CollectiveCounts counts_of(const std::vector<Entry>& entries) {
  CollectiveCounts counts;
  for (const Entry& entry : entries) {
    counts[fmt::format("{} {} {} {}", entry.kind, entry.where, entry.dtype, entry.payload)] +=
        entry.count;
  }
  return counts;
}

CollectiveCounts bytes_of(const std::vector<Entry>& entries) {
  CollectiveCounts bytes;
  for (const Entry& entry : entries) {
    bytes[fmt::format("{} {}", entry.kind, entry.where)] += entry.payload * entry.count;
  }
  return bytes;
}

}  // namespace

CollectiveCounts expected_collectives(const JsonReader& rows) {
  return counts_of(entries_of(rows));
}

CollectiveCounts actual_collectives(const Plan& plan) { return counts_of(entries_of(plan)); }

CollectiveCounts bytes_by_axes(const JsonReader& rows) { return bytes_of(entries_of(rows)); }

CollectiveCounts bytes_by_axes(const Plan& plan) { return bytes_of(entries_of(plan)); }

double expected_wire_bytes(const JsonReader& rows) {
  double bytes = 0;
  for (const JsonReader& row : rows.elements()) {
    const auto count = row.find("count");
    bytes += row.at("wire_bytes_per_device").number() *
             static_cast<double>(count ? count->integer(0, most_bytes) : 1);
  }
  return bytes;
}

double actual_wire_bytes(const Plan& plan) {
  double bytes = 0;
  const std::vector<std::int64_t> executed = executions(plan);
  for (std::size_t i = 0; i < plan.collectives.size(); ++i) {
    const Collective& collective = plan.collectives[i];
    const Bytes once =
        wire_bytes_per_device(collective.kind, group_size(plan, collective), collective.payload);
    bytes += static_cast<double>(once.count()) * static_cast<double>(executed[i]);
  }
  return bytes;
}

std::string difference(const CollectiveCounts& expected, const CollectiveCounts& actual) {
  std::string text;
  for (const auto& [what, count] : expected) {
    const auto found = actual.find(what);
    const std::int64_t got = found == actual.end() ? 0 : found->second;
    if (got != count) text += fmt::format("    {}: expected {}, actual {}\n", what, count, got);
  }
  for (const auto& [what, count] : actual) {
    if (expected.count(what) == 0) {
      text += fmt::format("    {}: expected 0, actual {}\n", what, count);
    }
  }
  return text;
}

Mesh golden_mesh(const JsonReader& pairs) {
  std::vector<MeshAxis> axes;
  for (const JsonReader& pair : pairs.elements()) {
    axes.push_back({pair.elements().at(0).string(), pair.elements().at(1).integer(1, 1 << 20)});
  }
  return Mesh(std::move(axes));
}

Plan told_by(Plan plan, const Mesh& mesh) {
  for (Collective& collective : plan.collectives) {
    if (collective.kind == CollectiveKind::collective_permute) continue;
    auto groups = collective.axes.empty() ? collective.groups : plan.mesh.groups(collective.axes);
    auto axes = axes_of_groups(mesh, groups);
    if (!axes && collective.kind == CollectiveKind::all_reduce) {
      // The order within a group does not matter to a sum.
      for (auto& group : groups) std::sort(group.begin(), group.end());
      axes = axes_of_groups(mesh, groups);
    }
    collective.axes = axes.value_or(std::vector<AxisRef>{});
    if (axes) groups.clear();
    collective.groups = std::move(groups);
  }
  plan.mesh = mesh;
  return plan;
}

}  // namespace shardsim::test
