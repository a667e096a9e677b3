#include "measurements/trace_tables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "base/text.hpp"
#include "measurements/error_summary.hpp"
#include "measurements/traced_kernel.hpp"

namespace shardsim {
namespace {

// A process group as its kernels tell it.
struct Group {
  std::string name;
  std::vector<std::int64_t> ranks;  // empty: not known
  std::int64_t size = 0;
  bool is_continued = false;  // ranks beyond a list that was cut

  [[nodiscard]] auto operator<=>(const Group&) const = default;
};

// Of a list that was cut, going on with the step it has; empty if it has none.
std::vector<std::int64_t> continued(const std::vector<std::int64_t>& ranks, std::int64_t size) {
  if (ranks.size() < 2 || static_cast<std::int64_t>(ranks.size()) > size) return {};
  const std::int64_t step = ranks[1] - ranks[0];
  for (std::size_t i = 1; i < ranks.size(); ++i) {
    if (ranks[i] - ranks[i - 1] != step) return {};
  }
  if (step < 1 || ranks[0] + step * (size - 1) >= most_ranks) return {};
  std::vector<std::int64_t> result;
  for (std::int64_t i = 0; i < size; ++i) result.push_back(ranks[0] + step * i);
  return result;
}

Group group_of(const CollectiveRecord& record, const RankTrace& trace) {
  Group group{record.group, {}, record.group_size, false};
  const auto has_all = [&](const std::vector<std::int64_t>& ranks) {
    return static_cast<std::int64_t>(ranks.size()) == record.group_size;
  };
  if (!record.ranks.is_cut && has_all(record.ranks.ranks)) {
    group.ranks = record.ranks.ranks;
    return group;
  }
  const auto configured = trace.groups.find(record.group);
  if (configured != trace.groups.end() && has_all(configured->second)) {
    group.ranks = configured->second;
  } else if (trace.world_size == record.group_size) {
    group.ranks = continued({0, 1}, record.group_size);
  } else if (record.ranks.is_cut) {
    group.ranks = continued(record.ranks.ranks, record.group_size);
    group.is_continued = true;
  }
  return group;
}

// 0: the group lies unevenly. Nothing: not known.
std::optional<std::int64_t> nodes_of(const Group& group,
                                     const std::optional<std::int64_t>& devices_per_node) {
  if (group.ranks.empty() || !devices_per_node) return std::nullopt;
  std::map<std::int64_t, std::int64_t> members;
  for (const std::int64_t rank : group.ranks) ++members[rank / *devices_per_node];
  const bool is_even = std::all_of(members.begin(), members.end(), [&](const auto& node) {
    return node.second == members.begin()->second;
  });
  return is_even ? static_cast<std::int64_t>(members.size()) : 0;
}

// Of one collective, what the rank took that waited least.
struct Instance {
  double time = 0;
  bool is_whole = false;  // all ranks were looked at
  bool is_alone = false;  // and no other kernel ran beside that one
};

struct Table {
  std::int64_t kernels = 0;
  bool is_continued = false;
  std::map<Bytes, std::vector<Instance>> rows;
};

// Which table: as it is told in errors, in this order.
struct TableKey {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::int64_t ranks = 0;
  std::optional<std::int64_t> nodes;
  std::string algorithm;

  [[nodiscard]] auto operator<=>(const TableKey&) const = default;
};

// Of a row.
double row_time(const std::vector<Instance>& instances) {
  std::vector<double> all;
  std::vector<double> whole;
  std::vector<double> alone;
  for (const Instance& instance : instances) {
    all.push_back(instance.time);
    if (instance.is_whole) whole.push_back(instance.time);
    if (instance.is_alone) alone.push_back(instance.time);
  }
  if (!alone.empty()) return quantile(std::move(alone), 0.5);
  if (!whole.empty()) return quantile(std::move(whole), 0.5);
  return *std::min_element(all.begin(), all.end());
}

class JobTables {
 public:
  JobTables(const std::vector<RankTrace>& traces,
            const std::optional<std::int64_t>& devices_per_node)
      : traces_(traces), devices_per_node_(devices_per_node) {
    require_different_ranks();
    for (const auto& [group, kernels] : kernels_by_group()) add_group(group, kernels);
  }

  [[nodiscard]] std::vector<Json> tables(const std::string& name, const std::string& source) const {
    if (tables_.empty()) fail_empty();
    std::vector<Json> tables;
    for (const auto& [key, table] : tables_) tables.push_back(json_of(key, table, name, source));
    return tables;
  }

 private:
  using Kernels = std::vector<std::vector<const TracedCollective*>>;  // by trace
  struct OfRank {
    std::size_t trace = 0;
    const TracedCollective* kernel = nullptr;
  };
  // Of one collective: by what it is, as traces that are matched wrongly tell different things.
  using InstanceCases = std::map<TracedCase, std::vector<OfRank>>;
  // Its number, which of those of one number on a rank it is, and the trace where it stands alone.
  using InstanceKey = std::tuple<std::int64_t, std::int64_t, std::size_t>;

  void require_different_ranks() const {
    if (traces_.size() == 1) return;
    std::map<std::int64_t, std::string> seen;
    for (const RankTrace& trace : traces_) {
      const Place place{trace.file, "/distributedInfo/rank"};
      if (!trace.rank) throw InputError(place, "is not said, and there are traces of other ranks");
      const auto [found, is_new] = seen.emplace(*trace.rank, trace.file);
      if (is_new) continue;
      throw InputError(place, fmt::format("rank {} is in {}, too; give one trace of each rank, and "
                                          "other jobs in folders of their own",
                                          *trace.rank, found->second));
    }
  }

  [[nodiscard]] std::map<Group, Kernels> kernels_by_group() const {
    std::map<Group, Kernels> groups;
    for (std::size_t i = 0; i < traces_.size(); ++i) {
      for (const TracedCollective& kernel : traces_[i].collectives) {
        Kernels& kernels = groups[group_of(kernel.record, traces_[i])];
        kernels.resize(traces_.size());
        kernels[i].push_back(&kernel);
      }
    }
    return groups;
  }

  // A collective's kernels on several ranks have one number: in the group's sequence where all of
  // them tell it, else in the order in which they began, if all ranks have as many. Otherwise the
  // collectives of every rank count on their own.
  static bool have_sequence(const Kernels& kernels) {
    return std::all_of(kernels.begin(), kernels.end(), [](const auto& of_rank) {
      return std::all_of(of_rank.begin(), of_rank.end(), [](const TracedCollective* kernel) {
        return kernel->record.sequence.has_value();
      });
    });
  }

  static bool are_as_many(const Kernels& kernels) {
    std::set<std::size_t> counts;
    for (const auto& of_rank : kernels) {
      if (!of_rank.empty()) counts.insert(of_rank.size());
    }
    return counts.size() == 1;
  }

  void add_group(const Group& group, const Kernels& kernels) {
    const std::optional<std::int64_t> nodes = nodes_of(group, devices_per_node_);
    const bool in_sequence = have_sequence(kernels);
    const bool in_order = are_as_many(kernels);
    std::map<InstanceKey, InstanceCases> instances;
    for (std::size_t trace = 0; trace < kernels.size(); ++trace) {
      const std::size_t apart = in_sequence || in_order ? 0 : trace;
      std::map<std::int64_t, std::int64_t> seen;
      for (std::size_t i = 0; i < kernels[trace].size(); ++i) {
        const TracedCollective& kernel = *kernels[trace][i];
        const auto number = in_sequence ? *kernel.record.sequence : static_cast<std::int64_t>(i);
        const std::int64_t repeated = seen[number]++;
        const auto judged = judge(kernel);
        if (const auto* why = std::get_if<PassedOver>(&judged)) {
          ++passed_over_[*why];
        } else if (nodes == 0) {
          ++passed_over_["of groups that lie unevenly on nodes"];
        } else {
          instances[{number, repeated, apart}][std::get<TracedCase>(judged)].push_back(
              {trace, &kernel});
        }
      }
    }
    for (const auto& [number, cases] : instances) {
      for (const auto& [traced, same] : cases) add_instance(group, nodes, traced, same);
    }
  }

  // Kernels are of different traces, and traces of different ranks.
  [[nodiscard]] bool are_all_ranks(const Group& group, const std::vector<OfRank>& kernels) const {
    if (group.ranks.size() != kernels.size()) return false;
    return std::all_of(kernels.begin(), kernels.end(), [&](const OfRank& one) {
      const auto& rank = traces_[one.trace].rank;
      return rank && std::find(group.ranks.begin(), group.ranks.end(), *rank) != group.ranks.end();
    });
  }

  void add_instance(const Group& group, const std::optional<std::int64_t>& nodes,
                    const TracedCase& traced, const std::vector<OfRank>& kernels) {
    Table& table = tables_[{traced.kind, group.size, nodes, traced.algorithm}];
    table.kernels += static_cast<std::int64_t>(kernels.size());
    table.is_continued = table.is_continued || group.is_continued;
    const TracedCollective& least =
        *std::min_element(kernels.begin(), kernels.end(), [](const OfRank& a, const OfRank& b) {
           return a.kernel->duration < b.kernel->duration;
         })->kernel;
    const bool is_whole = are_all_ranks(group, kernels);
    table.rows[traced.payload].push_back(
        {least.duration, is_whole, is_whole && !least.is_beside_other_kernels});
  }

  [[noreturn]] void fail_empty() const {
    const Place place{traces_.front().file, "/traceEvents"};
    const std::string why = passed_over_text();
    if (why.empty()) {
      throw InputError(place,
                       "no kernel of NCCL or RCCL is among them; profile with "
                       "ProfilerActivity.CUDA");
    }
    throw InputError(place, "no collective can be taken for a measurement: " + why);
  }

  // "12 of coalesced collectives, 3 without data".
  [[nodiscard]] std::string passed_over_text() const {
    std::map<std::string, std::int64_t> counts = passed_over_;
    for (const RankTrace& trace : traces_) {
      if (trace.unexplained > 0) counts["that do not say what they do"] += trace.unexplained;
    }
    std::vector<std::string> parts;
    for (const auto& [why, count] : counts) parts.push_back(fmt::format("{} {}", count, why));
    return fmt::format("{}", fmt::join(parts, ", "));
  }

  [[nodiscard]] Json json_of(const TableKey& key, const Table& table, const std::string& name,
                             const std::string& source) const {
    Json json;
    json["id"] =
        fmt::format("{}_{}{}g_{}{}", name, key.nodes ? fmt::format("{}n", *key.nodes) : "",
                    key.ranks, name_of(key.kind), key.algorithm.empty() ? "" : "_" + key.algorithm);
    json["source"] = source;
    json["collective"] = name_of(key.kind);
    json["ranks"] = key.ranks;
    if (key.nodes) json["nodes"] = *key.nodes;
    if (!key.algorithm.empty()) json["algo"] = key.algorithm;
    const std::string& version = traces_.front().nccl_version;
    if (!version.empty()) json["nccl_version"] = version;
    json["notes"] = notes_on(key, table);
    json["rows"] = Json::array();
    for (const auto& [bytes, instances] : table.rows) {
      json["rows"].push_back({{"bytes", bytes.count()}, {"time_us", row_time(instances)}});
    }
    return json;
  }

  [[nodiscard]] Json notes_on(const TableKey& key, const Table& table) const {
    Json notes = Json::array();
    std::int64_t waiting = 0;
    std::int64_t shared = 0;
    for (const auto& [bytes, instances] : table.rows) {
      const auto is_whole = [](const Instance& instance) { return instance.is_whole; };
      const auto is_alone = [](const Instance& instance) { return instance.is_alone; };
      if (std::none_of(instances.begin(), instances.end(), is_whole)) {
        ++waiting;
      } else if (std::none_of(instances.begin(), instances.end(), is_alone)) {
        ++shared;
      }
    }
    const auto of_rows = [&](std::int64_t some) {
      return fmt::format("{} of {}", some,
                         counted(static_cast<std::int64_t>(table.rows.size()), "row"));
    };
    notes.push_back(fmt::format("times are those of {} alone, without their launch",
                                counted(table.kernels, "kernel")));
    if (waiting > 0) {
      notes.push_back(fmt::format(
          "{}: {} of {} ranks traced, whose kernels wait for the others; the shortest is taken",
          of_rows(waiting), traces_.size(), key.ranks));
    }
    if (shared > 0) {
      notes.push_back(of_rows(shared) + ": always beside other kernels");
    }
    if (table.is_continued) {
      notes.push_back("lists of ranks are cut: their steps are taken to go on");
    }
    if (!key.nodes && devices_per_node_) {
      notes.push_back("which ranks the group has is not said: it is taken to fill nodes");
    }
    const std::string why = passed_over_text();
    if (!why.empty()) notes.push_back("kernels passed over: " + why);
    return notes;
  }

  const std::vector<RankTrace>& traces_;
  std::optional<std::int64_t> devices_per_node_;
  std::map<TableKey, Table> tables_;
  std::map<std::string, std::int64_t> passed_over_;  // kernels, by why
};

}  // namespace

std::vector<Json> tables_of_traces(const std::vector<RankTrace>& traces, const std::string& name,
                                   const std::string& source,
                                   const std::optional<std::int64_t>& devices_per_node) {
  return JobTables(traces, devices_per_node).tables(name, source);
}

}  // namespace shardsim
