#include "checks/causes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/json.hpp"
#include "base/text.hpp"
#include "checks/member_names.hpp"
#include "checks/metric.hpp"

namespace shardsim {
namespace {

constexpr std::size_t settings_told = 6;
constexpr std::size_t collectives_told = 3;
constexpr std::size_t categories_told = 3;
constexpr std::size_t shardings_told = 3;
constexpr std::size_t longest_value = 60;

using FlatSettings = std::map<std::string, std::string>;

// {"mesh": {"fsdp": 8}} -> mesh.fsdp: 8; lists are values.
void flatten(const Json& value, const std::string& path, FlatSettings& flat) {
  if (value.is_object() && !value.empty()) {
    for (const auto& [key, member] : value.items()) {
      flatten(member, path.empty() ? key : fmt::format("{}.{}", path, key), flat);
    }
    return;
  }
  std::string text = value.is_string() ? value.get<std::string>()
                                       : value.dump(-1, ' ', false, Json::error_handler_t::replace);
  flat[path] = std::move(text);
}

std::string shown(const FlatSettings& flat, const std::string& path) {
  const auto found = flat.find(path);
  if (found == flat.end()) return "nothing";
  if (found->second.size() <= longest_value) return found->second;
  return "another value";
}

// "strategy.prefetch 1 -> 2, workload.batch 64 -> 128"; empty where settings do not tell.
std::string changed_settings(const Recorded& before, const Recorded& now) {
  FlatSettings was;
  FlatSettings is;
  flatten(*before.settings, "", was);
  flatten(*now.settings, "", is);
  std::set<std::string> paths;
  for (const auto& [path, value] : was) paths.insert(path);
  for (const auto& [path, value] : is) paths.insert(path);
  std::vector<std::string> changes;
  for (const std::string& path : paths) {
    const auto old_value = was.find(path);
    const auto new_value = is.find(path);
    const bool same =
        old_value != was.end() && new_value != is.end() && old_value->second == new_value->second;
    if (path.empty() || same) continue;
    changes.push_back(fmt::format("{} {} -> {}", path, shown(was, path), shown(is, path)));
  }
  if (changes.size() > settings_told) {
    const std::size_t more = changes.size() - settings_told;
    changes.resize(settings_told);
    changes.push_back(fmt::format("and {} more", more));
  }
  return fmt::format("{}", fmt::join(changes, ", "));
}

// What the experiment names as its model or machine: "toy"; empty for what is written in place.
std::string named(const Recorded& recorded, const char* section, const char* key) {
  const Json& settings = *recorded.settings;
  if (!settings.is_object() || !settings.contains(section)) return {};
  const Json* value = &settings[section];
  if (value->is_object() && value->contains(key)) value = &(*value)[key];
  return value->is_string() ? value->get<std::string>() : std::string();
}

std::string in_parentheses(const std::string& text) {
  return text.empty() ? text : " (" + text + ")";
}

// Collectives of one kind, axes and place before, and how much of them is left to be matched.
class Matches {
 public:
  explicit Matches(const Recorded& before) : left_(before.collectives) {}

  // Calls of the same that there were, up to `calls`.
  std::int64_t take_same(const RecordedCollective& one) {
    return take(one, [&](const RecordedCollective& other) {
      return other.dtype == one.dtype && other.payload == one.payload && other.where == one.where;
    });
  }
  // Of another place or reason: the text may have changed, what is sent has not.
  std::int64_t take_alike(const RecordedCollective& one) {
    return take(one, [&](const RecordedCollective& other) {
      return other.dtype == one.dtype && other.payload == one.payload;
    });
  }
  // Of another size in the same place.
  [[nodiscard]] const RecordedCollective* other_size(const RecordedCollective& one) const {
    const auto found = std::find_if(left_.begin(), left_.end(), [&](const auto& other) {
      return other.calls > 0 && other.kind == one.kind && other.over == one.over &&
             other.where == one.where;
    });
    return found == left_.end() ? nullptr : &*found;
  }

 private:
  template <class Condition>
  std::int64_t take(const RecordedCollective& one, Condition condition) {
    for (RecordedCollective& other : left_) {
      if (other.calls == 0 || other.kind != one.kind || other.over != one.over) continue;
      if (!condition(other)) continue;
      const std::int64_t taken = std::min(other.calls, one.calls);
      other.calls -= taken;
      return taken;
    }
    return 0;
  }

  std::vector<RecordedCollective> left_;
};

struct Grown {
  const ExplainedCollective* row = nullptr;
  RecordedCollective now;
  std::int64_t unmatched = 0;  // calls that there were not before
};

std::vector<Grown> unmatched_rows(Matches& matches, const Explanation& now) {
  std::vector<Grown> rows;
  for (const ExplainedCollective& row : now.collectives) {
    rows.push_back({&row, recorded_of(row), row.count});
  }
  for (Grown& one : rows) one.unmatched -= matches.take_same(one.now);
  for (Grown& one : rows) {
    if (one.unmatched == 0) continue;
    RecordedCollective rest = one.now;
    rest.calls = one.unmatched;
    one.unmatched -= matches.take_alike(rest);
  }
  std::erase_if(rows, [](const Grown& one) { return one.unmatched == 0; });
  return rows;
}

std::string often(std::int64_t calls) {
  return calls == 1 ? "once" : fmt::format("{} times", format_count(calls));
}

std::string collective_text(const ExplainedCollective& row, const std::string& what) {
  std::string text =
      fmt::format("{}, {} {}, {}{}", traffic_part(name_of(row.kind), row.over),
                  format_bytes(row.payload), name_of(row.dtype), often(row.count), what);
  if (!row.where.empty()) text += fmt::format(": {}", row.where.front());
  if (!row.reason.empty()) text += fmt::format("; why: {}", row.reason);
  if (!row.remedy.empty()) text += fmt::format("; to avoid: {}", row.remedy);
  return text;
}

bool is_part(const ExplainedCollective& row, const std::string& part) {
  if (part.empty() || part == name_of(row.kind)) return true;
  return part == traffic_part(name_of(row.kind), row.over);
}

std::string what_grew(const Grown& one, const Matches& matches, bool knows_all) {
  if (one.unmatched < one.row->count) {
    return fmt::format(" where it was {}", often(one.row->count - one.unmatched));
  }
  if (const RecordedCollective* other = matches.other_size(one.now)) {
    return fmt::format(", was {} {}, {}", format_bytes(other->payload), other->dtype,
                       often(other->calls));
  }
  return knows_all ? ", is new" : ", is new or was not among those recorded";
}

std::vector<std::string> heaviest(const Explanation& now, const std::string& part) {
  std::vector<const ExplainedCollective*> rows;
  for (const ExplainedCollective& row : now.collectives) {
    if (is_part(row, part)) rows.push_back(&row);
  }
  std::stable_sort(rows.begin(), rows.end(), [](const auto* a, const auto* b) {
    return a->total_wire_bytes() > b->total_wire_bytes();
  });
  if (rows.size() > collectives_told) rows.resize(collectives_told);
  std::vector<std::string> texts;
  for (const ExplainedCollective* row : rows) texts.push_back(collective_text(*row, ""));
  return texts;
}

std::string sized(const std::string& name, std::int64_t bytes) {
  std::string label = name;
  std::replace(label.begin(), label.end(), '_', ' ');
  return fmt::format("{} {}", label, format_bytes(Bytes(bytes)));
}

// "model.layers.{}.mlp.act_fn +1.3 GiB": buffers that are larger than they were, the first few.
std::string grown_buffers(const Recorded& before, const Recorded& now) {
  std::vector<std::pair<std::int64_t, std::string>> grown;
  for (const auto& [name, bytes] : now.peak_buffers) {
    const auto was = before.peak_buffers.find(name);
    if (was == before.peak_buffers.end()) continue;  // it may only not have been among the largest
    if (bytes > was->second) grown.emplace_back(was->second - bytes, name);
  }
  std::sort(grown.begin(), grown.end());
  if (grown.size() > categories_told) grown.resize(categories_told);
  std::vector<std::string> texts;
  for (const auto& [less, name] : grown) {
    texts.push_back(fmt::format("{} +{}", name, format_bytes(Bytes(-less))));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

double value_of(const Recorded& recorded, const char* name) {
  const auto found = recorded.values.find(name);
  return found == recorded.values.end() ? 0 : found->second;
}

// Whether a spec names any axis: "P(fsdp, None)" does, "P(None, None)" and "P()" do not.
bool splits(std::string_view spec) {
  constexpr std::string_view opening = "P(";
  if (!spec.starts_with(opening) || !spec.ends_with(')')) return false;
  spec.remove_prefix(opening.size());
  spec.remove_suffix(1);
  while (!spec.empty()) {
    const std::string_view entry = spec.substr(0, spec.find(", "));
    if (entry != "None") return true;
    spec.remove_prefix(std::min(spec.size(), entry.size() + 2));
  }
  return false;
}

}  // namespace

std::string changed_inputs(const Recorded& before, const Recorded& now) {
  const MadeFrom& was = before.made_from;
  const MadeFrom& is = now.made_from;
  std::vector<std::string> changes;
  if (was.experiment != is.experiment) {
    const std::string settings = changed_settings(before, now);
    changes.push_back("the experiment changed" + (settings.empty() ? "" : ": " + settings));
  }
  // Another name, which the experiment's change has told, has another content, too.
  const bool is_program = now.settings->is_object() && !now.settings->contains("workload");
  const char* section = is_program ? "program" : "workload";
  const std::string model = named(now, section, "model");
  if (was.model != is.model && model == named(before, section, "model")) {
    changes.push_back((is_program ? "the program changed" : "the model's file changed") +
                      in_parentheses(model));
  }
  const std::string machine = named(now, "machine", "name");
  const bool same_machine = machine == named(before, "machine", "name");
  if (was.machine != is.machine && same_machine) {
    changes.push_back("the machine's profile changed" + in_parentheses(machine));
  }
  if (was.calibration != is.calibration && same_machine) {
    changes.push_back("the calibration of the machine changed" + in_parentheses(machine));
  }
  if (was.shardsim != is.shardsim) {
    changes.push_back(fmt::format("shardsim itself changed: {} -> {}", was.shardsim, is.shardsim));
  }
  if (!changes.empty()) return fmt::format("{}", fmt::join(changes, "; "));
  return fmt::format(
      "experiment, model, machine and calibration are as they were: shardsim itself changed, "
      "though its version is {} as before",
      is.shardsim);
}

std::vector<std::string> grown_collectives(const Recorded* before, const Explanation& now,
                                           const std::string& part) {
  if (before == nullptr) return heaviest(now, part);
  Matches matches(*before);
  std::vector<Grown> rows = unmatched_rows(matches, now);
  std::erase_if(rows, [&](const Grown& one) { return !is_part(*one.row, part); });
  std::stable_sort(rows.begin(), rows.end(), [](const Grown& a, const Grown& b) {
    return a.unmatched * a.row->wire_bytes > b.unmatched * b.row->wire_bytes;
  });
  std::int64_t calls = 0;
  for (const RecordedCollective& one : before->collectives) calls += one.calls;
  std::int64_t all = 0;
  for (const auto& [name, traffic] : before->communication) all += traffic.calls;
  std::vector<std::string> texts;
  for (const Grown& one : rows) {
    if (texts.size() == collectives_told) {
      texts.push_back(
          fmt::format("and {} more that are new or have grown", rows.size() - collectives_told));
      break;
    }
    texts.push_back(collective_text(*one.row, what_grew(one, matches, calls >= all)));
  }
  return texts;
}

std::string grown_times(const Recorded& before, const Recorded& now) {
  struct Part {
    const char* name;
    const char* label;
  };
  std::vector<std::string> parts;
  for (const Part& part :
       {Part{"compute_time_s", "compute"}, Part{"contention_time_s", "contention"},
        Part{"exposed_communication_s", "exposed communication"}, Part{"idle_time_s", "idle"}}) {
    const double was = value_of(before, part.name);
    const double is = value_of(now, part.name);
    if (is == was) continue;
    parts.push_back(fmt::format("{} {}", part.label, format_change("step_time_s", was, is)));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::vector<std::string> grown_memory(const Recorded* before, const Recorded& now) {
  std::vector<std::pair<std::int64_t, std::string>> grown;  // the negative growth, category
  for (const auto& [category, bytes] : now.by_category) {
    const bool known = before != nullptr && before->by_category.contains(category);
    const std::int64_t was = known ? before->by_category.at(category) : 0;
    if (bytes > was) grown.emplace_back(was - bytes, category);
  }
  std::sort(grown.begin(), grown.end());
  if (grown.size() > categories_told) grown.resize(categories_told);
  std::vector<std::string> parts;
  for (const auto& [less, category] : grown) {
    std::string text = sized(category, now.by_category.at(category));
    if (before != nullptr) text += fmt::format(" (+{})", format_bytes(Bytes(-less)));
    parts.push_back(std::move(text));
  }
  std::vector<std::string> texts;
  if (!parts.empty()) {
    texts.push_back(fmt::format("{}: {}", before != nullptr ? "what grew" : "at the peak",
                                fmt::join(parts, ", ")));
  }
  if (before == nullptr) return texts;
  const std::string buffers = grown_buffers(*before, now);
  if (!buffers.empty()) texts.push_back("buffers: " + buffers);
  const double capacity = value_of(now, "capacity_bytes");
  if (capacity < value_of(*before, "capacity_bytes")) {
    texts.push_back(fmt::format("a device has {} of memory, {} before",
                                format_metric("peak_bytes", capacity),
                                format_metric("peak_bytes", value_of(*before, "capacity_bytes"))));
  }
  return texts;
}

std::vector<std::string> changed_shardings(const Recorded& before, const Recorded& now) {
  ValuesByName changes;
  for (const auto& [name, spec] : now.shardings) {
    const auto was = before.shardings.find(name);
    if (was == before.shardings.end() || was->second == spec) continue;
    changes[name] = fmt::format("{} -> {}", was->second, spec);
  }
  std::vector<std::string> texts;
  for (const auto& [names, change] : fold_members(changes)) {
    texts.push_back(fmt::format("sharding of {}: {}", names, change));
  }
  if (texts.size() > shardings_told) {
    const std::size_t more = texts.size() - shardings_told;
    texts.resize(shardings_told);
    texts.push_back(fmt::format("and {} more shardings changed", more));
  }
  return texts;
}

NewlyReplicated newly_replicated(const Recorded& before, const Recorded& now,
                                 const SpecTable& specs) {
  std::map<std::string_view, const ParameterSharding*> rows;
  for (const ParameterSharding& row : specs.parameters) rows.emplace(row.name, &row);
  NewlyReplicated result;
  ValuesByName whole;
  for (const auto& [name, spec] : now.shardings) {
    const auto was = before.shardings.find(name);
    if (was == before.shardings.end() || splits(spec) || !splits(was->second)) continue;
    std::string text = fmt::format("whole on every device, {} before", was->second);
    const auto row = rows.find(name);
    if (row != rows.end()) {
      text += fmt::format("; {}", row->second->assigned_by);
      if (!row->second->reason.empty()) text += fmt::format(": {}", row->second->reason);
    }
    result.parameters += row == rows.end() ? 1 : row->second->instances;
    whole[name] = std::move(text);
  }
  for (const auto& [names, text] : fold_members(whole)) {
    result.texts.push_back(fmt::format("{} is {}", names, text));
  }
  return result;
}

std::vector<std::string> newly_unmatched(const Recorded& before, const Recorded& now) {
  std::vector<std::string> texts;
  for (const std::string& rule : now.unmatched_rules) {
    const auto& was = before.unmatched_rules;
    if (std::find(was.begin(), was.end(), rule) != was.end()) continue;
    texts.push_back(fmt::format("rule \"{}\" matches no parameter", rule));
  }
  return texts;
}

}  // namespace shardsim
