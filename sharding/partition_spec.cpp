#include "sharding/partition_spec.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "base/json.hpp"
#include "sharding/rule_error.hpp"

namespace shardsim {
namespace {

const std::string unconstrained_key = "unconstrained";

// A cursor over the text of a spec.
class SpecParser {
 public:
  SpecParser(std::string_view text, const Place& place) : text_(text), place_(place) {}

  PartitionSpec parse() {
    const std::string_view whole = text_;
    for (const std::string_view prefix : {"PartitionSpec(", "P("}) {
      if (!text_.starts_with(prefix) || !text_.ends_with(")")) continue;
      text_ = text_.substr(prefix.size(), text_.size() - prefix.size() - 1);
      break;
    }
    PartitionSpec spec;
    skip_spaces();
    while (!text_.empty()) {
      spec.push_back(entry());
      if (!text_.empty() && !accept(',')) fail(whole);
    }
    return spec;
  }

 private:
  SpecEntry entry() {
    if (!accept('(')) {
      const std::string word = name();
      if (word == "None") return {};
      if (word == "UNCONSTRAINED") {
        SpecEntry open;
        open.unconstrained = true;
        return open;
      }
      return {word};
    }
    SpecEntry axes;
    while (!accept(')')) {
      axes.axes.push_back(name());
      if (!accept(',') && !text_.starts_with(')')) fail(text_);
    }
    return axes;
  }

  std::string name() {
    const bool quoted = text_.starts_with('\'') || text_.starts_with('"');
    const std::string end = quoted ? std::string(1, text_.front()) : ",) ";
    if (quoted) text_.remove_prefix(1);
    // A sub-axis has parentheses of its own: "x:(1)2".
    const std::size_t sub_axis = quoted ? std::string::npos : text_.find(":(");
    std::size_t length = std::min(text_.find_first_of(end), text_.size());
    if (sub_axis < length) {
      length = std::min(text_.find(')', sub_axis), text_.size() - 1) + 1;
      length = std::min(text_.find_first_of(end, length), text_.size());
    }
    std::string word(text_.substr(0, length));
    text_.remove_prefix(length);
    if (word.empty() || (quoted && text_.empty())) fail(text_);
    if (quoted) text_.remove_prefix(1);
    skip_spaces();
    return word;
  }

  bool accept(char c) {
    if (!text_.starts_with(c)) return false;
    text_.remove_prefix(1);
    skip_spaces();
    return true;
  }

  void skip_spaces() { text_.remove_prefix(std::min(text_.find_first_not_of(' '), text_.size())); }

  [[noreturn]] void fail(std::string_view at) const {
    throw InputError(place_, fmt::format("a PartitionSpec such as \"fsdp, None, (data, model)\" is "
                                         "expected at \"{}\"",
                                         at));
  }

  std::string_view text_;
  const Place& place_;
};

std::string entry_text(const SpecEntry& entry) {
  if (entry.unconstrained) return "UNCONSTRAINED";
  if (entry.axes.empty()) return "None";
  if (entry.axes.size() == 1) return entry.axes[0];
  return fmt::format("({})", fmt::join(entry.axes, ", "));
}

}  // namespace

SpecEntry read_spec_entry(const JsonReader& json) {
  SpecEntry entry;
  if (json.is_null()) return entry;
  if (json.is_object()) {
    json.only_keys({unconstrained_key});
    entry.unconstrained = json.at(unconstrained_key).boolean();
    return entry;
  }
  if (json.is_string()) {
    if (!json.string().empty()) entry.axes.push_back(json.string());
    return entry;
  }
  for (const JsonReader& axis : json.elements()) {
    if (axis.is_array()) {
      throw RuleError("ValueError", axis.place(), "an entry of a PartitionSpec cannot be nested");
    }
    entry.axes.push_back(axis.string());
  }
  return entry;
}

PartitionSpec read_partition_spec(const JsonReader& json) {
  PartitionSpec spec;
  for (const JsonReader& entry : json.elements()) spec.push_back(read_spec_entry(entry));
  return spec;
}

Json to_json(const SpecEntry& entry) {
  if (entry.unconstrained) return {{unconstrained_key, true}};
  if (entry.axes.empty()) return nullptr;
  return entry.axes.size() == 1 ? Json(entry.axes[0]) : Json(entry.axes);
}

Json to_json(const PartitionSpec& spec) {
  Json json = Json::array();
  for (const SpecEntry& entry : spec) json.push_back(to_json(entry));
  return json;
}

std::string to_string(const PartitionSpec& spec) {
  std::vector<std::string> entries;
  for (const SpecEntry& entry : spec) entries.push_back(entry_text(entry));
  return fmt::format("P({})", fmt::join(entries, ", "));
}

PartitionSpec parse_partition_spec(std::string_view text, const Place& place) {
  return SpecParser(text, place).parse();
}

void check_axes(const PartitionSpec& spec, const Mesh& mesh, const Place& place) {
  std::vector<std::string> used;
  for (const SpecEntry& entry : spec) {
    for (const std::string& axis : entry.axes) {
      if (std::find(used.begin(), used.end(), axis) != used.end()) {
        throw RuleError("DuplicateSpecError", place,
                        fmt::format("axis \"{}\" is used twice in {}", axis, to_string(spec)));
      }
      used.push_back(axis);
    }
  }
  for (const std::string& axis : used) {
    if (mesh.parse(axis)) continue;
    std::vector<std::string> known;
    for (const MeshAxis& candidate : mesh.axes()) known.push_back(candidate.name);
    throw RuleError("ValueError", place,
                    fmt::format("axis \"{}\" of {} is not in the mesh ({})", axis, to_string(spec),
                                fmt::join(known, ", ")),
                    closest(axis, known));
  }
}

Sharding to_sharding(const PartitionSpec& spec, std::size_t rank, const Mesh& mesh,
                     const Place& place) {
  check_axes(spec, mesh, place);
  if (spec.size() > rank) {
    throw RuleError(
        "ValueError", place,
        fmt::format("{} has {} entries for {} dimensions", to_string(spec), spec.size(), rank));
  }
  Sharding sharding = replicated(rank);
  AxisList used;
  for (std::size_t d = 0; d < spec.size(); ++d) {
    if (spec[d].unconstrained) {
      throw RuleError("ValueError", place,
                      fmt::format("{}: UNCONSTRAINED is no sharding", to_string(spec)));
    }
    for (const std::string& name : spec[d].axes) {
      const AxisRef axis = *mesh.parse(name);
      if (overlaps_any(axis, used)) {
        throw RuleError("DuplicateSpecError", place,
                        fmt::format("axis \"{}\" is used twice in {}", name, to_string(spec)));
      }
      used.push_back(axis);
      sharding.dims[d].axes.push_back(axis);
    }
  }
  return sharding;
}

PartitionSpec spec_of(const Sharding& sharding, const Mesh& mesh) {
  PartitionSpec spec;
  for (const DimSharding& dim : sharding.dims) spec.emplace_back(mesh.names_of(dim.axes));
  return spec;
}

}  // namespace shardsim
