#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <tuple>

#include "base/file.hpp"
#include "base/file_kind.hpp"
#include "base/json.hpp"
#include "checks/baseline.hpp"
#include "checks/member_names.hpp"

namespace shardsim {
namespace {

constexpr std::string_view baseline_schema = "shardsim/baseline/1";
constexpr std::string_view limits_schema = "shardsim/limits/1";

// Of one figure, and of those that reports sum up: no more when it is a double.
constexpr std::int64_t most_in_sum = std::int64_t{1} << 62;

std::int64_t read_amount(const JsonReader& json) { return json.integer(0, most_in_sum); }

std::int64_t read_part(const JsonReader& json, std::int64_t& total) {
  const std::int64_t amount = read_amount(json);
  if (amount > most_in_sum - total) {
    json.fail(fmt::format("with those before it more than {}", most_in_sum));
  }
  total += amount;
  return amount;
}

double read_value(const std::string& key, const JsonReader& json) {
  if (key == "fits") return json.boolean() ? 1 : 0;
  if (!key.ends_with("_s")) return static_cast<double>(read_amount(json));
  const double value = json.number();
  if (!std::isfinite(value) || value < 0) json.fail("expected a number of at least 0");
  return value;
}

MadeFrom read_made_from(const JsonReader& json) {
  json.only_keys({"experiment", "model", "machine", "calibration", "shardsim"});
  const auto digest = [&](const char* key) {
    const auto found = json.find(key);
    return found ? found->string() : std::string();
  };
  return {.experiment = digest("experiment"),
          .model = digest("model"),
          .machine = digest("machine"),
          .calibration = digest("calibration"),
          .shardsim = digest("shardsim")};
}

std::map<std::string, std::int64_t> read_amounts(const std::optional<JsonReader>& json) {
  std::map<std::string, std::int64_t> amounts;
  if (!json) return amounts;
  for (const auto& [name, value] : json->members()) amounts[name] = read_amount(value);
  return amounts;
}

std::vector<std::string> read_strings(const std::optional<JsonReader>& json) {
  std::vector<std::string> strings;
  if (!json) return strings;
  for (const JsonReader& one : json->elements()) strings.push_back(one.string());
  return strings;
}

std::map<std::string, Traffic> read_communication(const JsonReader& json) {
  std::map<std::string, Traffic> communication;
  std::int64_t calls = 0;
  std::int64_t wire = 0;
  for (const auto& [name, traffic] : json.members()) {
    traffic.only_keys({"calls", "wire_bytes"});
    communication[name] = {.calls = read_part(traffic.at("calls"), calls),
                           .wire = Bytes(read_part(traffic.at("wire_bytes"), wire))};
  }
  return communication;
}

RecordedCollective read_collective(const JsonReader& json, std::int64_t& calls) {
  json.only_keys({"kind", "over", "dtype", "payload_bytes", "calls", "where"});
  return {.kind = json.at("kind").string(),
          .over = json.at("over").string(),
          .dtype = json.at("dtype").string(),
          .payload = Bytes(read_amount(json.at("payload_bytes"))),
          .where = json.at("where").string(),
          .calls = read_part(json.at("calls"), calls)};
}

void read_origin(const JsonReader& json, Recorded& recorded) {
  if (const auto file = json.find("file")) recorded.file = file->string();
  if (const auto folder = json.find("folder")) recorded.folder = folder->string();
  if (const auto name = json.find("name")) recorded.name = name->string();
  recorded.options = read_strings(json.find("options"));
  if (!recorded.file.empty() && !recorded.folder.empty()) {
    json.fail("has a \"file\" and a \"folder\": leave one of them out");
  }
  if (const auto made_from = json.find("made_from")) {
    recorded.made_from = read_made_from(*made_from);
  }
  if (const auto settings = json.find("settings")) {
    static_cast<void>(settings->members());  // an object
    *recorded.settings = settings->json();
  }
}

Recorded read_recorded(const std::string& key, const JsonReader& json) {
  std::vector<std::string> known = {"file",        "folder",    "name",         "options",
                                    "made_from",   "settings",  "by_category",  "communication",
                                    "collectives", "shardings", "peak_buffers", "unmatched_rules"};
  known.insert(known.end(), recorded_values().begin(), recorded_values().end());
  json.only_keys(known);
  Recorded recorded;
  recorded.name = key;
  read_origin(json, recorded);
  for (const std::string& value : recorded_values()) {
    if (const auto found = json.find(value)) recorded.values[value] = read_value(value, *found);
  }
  recorded.by_category = read_amounts(json.find("by_category"));
  recorded.peak_buffers = read_amounts(json.find("peak_buffers"));
  if (const auto communication = json.find("communication")) {
    recorded.communication = read_communication(*communication);
  }
  if (const auto collectives = json.find("collectives")) {
    std::int64_t calls = 0;
    for (const JsonReader& one : collectives->elements()) {
      recorded.collectives.push_back(read_collective(one, calls));
    }
  }
  if (const auto shardings = json.find("shardings")) recorded.shardings = read_members(*shardings);
  recorded.unmatched_rules = read_strings(json.find("unmatched_rules"));
  return recorded;
}

// Whether it is that of limits alone.
bool read_schema(const JsonReader& root) {
  const JsonReader schema = root.at("schema");
  const std::string name = schema.string();
  if (name == baseline_schema || name == limits_schema) return name == limits_schema;
  schema.fail("\"" + name + "\" is neither \"" + std::string(baseline_schema) + "\" nor \"" +
              std::string(limits_schema) + "\"");
}

}  // namespace

const std::vector<std::string>& recorded_values() {
  static const std::vector<std::string> names = {"step_time_s",       "compute_time_s",
                                                 "contention_time_s", "exposed_communication_s",
                                                 "idle_time_s",       "fits",
                                                 "capacity_bytes",    "peak_bytes",
                                                 "parameter_bytes",   "replicated_parameters"};
  return names;
}

bool Recorded::holds_figures() const {
  return made_from != MadeFrom{} || !values.empty() || !communication.empty();
}

bool operator==(const Recorded& a, const Recorded& b) {
  const auto fields = [](const Recorded& one) {
    return std::tie(one.file, one.folder, one.name, one.options, one.made_from, *one.settings,
                    one.values, one.by_category, one.communication, one.collectives, one.shardings,
                    one.peak_buffers, one.unmatched_rules);
  };
  return fields(a) == fields(b);
}

Baseline read_baseline(std::string_view text, const std::string& file) {
  require_kind(text, FileKind::baseline, file);
  const Json document = parse_json(text, file);
  if (kind_of_document(document) != FileKind::budgets) {
    require_kind_of_document(document, FileKind::baseline, file);
  }
  const JsonReader root(document, {file, ""});
  root.only_keys({"schema", "shardsim", "limits", "experiments"});
  const bool is_limits = read_schema(root);
  if (const auto version = root.find("shardsim")) static_cast<void>(version->string());
  Baseline baseline;
  baseline.file = file;
  baseline.is_limits = is_limits;
  if (const auto limits = root.find("limits")) {
    *baseline.stated_limits = limits->json();
    if (!limits->is_string()) baseline.limits = read_limits(*limits);
  }
  if (const auto experiments = root.find("experiments")) {
    for (const auto& [name, recorded] : experiments->members()) {
      baseline.experiments[name] = read_recorded(name, recorded);
    }
  }
  return baseline;
}

Baseline load_baseline(const std::string& path) {
  Baseline baseline = read_baseline(read_file(path), path);
  if (!baseline.stated_limits->is_string()) return baseline;
  const std::string beside = baseline.stated_limits->get<std::string>();
  const auto folder = std::filesystem::path(path).parent_path();
  const std::string limits_path = (folder / beside).string();
  const Baseline other = read_baseline(read_file(limits_path), limits_path);
  if (other.stated_limits->is_string() || !other.experiments.empty()) {
    throw InputError({limits_path, ""}, "expected a file with limits and nothing else");
  }
  baseline.limits = other.limits;
  return baseline;
}

}  // namespace shardsim
