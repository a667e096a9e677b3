#include "measurements/collective_measurement.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>

#include "base/json.hpp"
#include "base/text.hpp"
#include "measurements/size_sweep.hpp"
#include "sim/collectives/bus_bandwidth.hpp"

namespace shardsim {
namespace {

struct NamedKind {
  const char* name;
  CollectiveKind kind;
};

// The plan's names first, then those of nccl-tests and its users.
constexpr std::size_t plan_names = 6;
constexpr std::array named_kinds{
    NamedKind{"all-reduce", CollectiveKind::all_reduce},
    NamedKind{"all-gather", CollectiveKind::all_gather},
    NamedKind{"reduce-scatter", CollectiveKind::reduce_scatter},
    NamedKind{"all-to-all", CollectiveKind::all_to_all},
    NamedKind{"collective-permute", CollectiveKind::collective_permute},
    NamedKind{"broadcast", CollectiveKind::broadcast},
    NamedKind{"all_reduce", CollectiveKind::all_reduce},
    NamedKind{"all_gather", CollectiveKind::all_gather},
    NamedKind{"reduce_scatter", CollectiveKind::reduce_scatter},
    NamedKind{"all_to_all", CollectiveKind::all_to_all},
    NamedKind{"allreduce", CollectiveKind::all_reduce},
    NamedKind{"allgather", CollectiveKind::all_gather},
    NamedKind{"reducescatter", CollectiveKind::reduce_scatter},
    NamedKind{"alltoall", CollectiveKind::all_to_all},
    NamedKind{"sendrecv", CollectiveKind::collective_permute}};

const std::vector<std::string> read_keys = {"id",    "source",  "machine",       "collective",
                                            "ranks", "nodes",   "gpus_per_node", "algo",
                                            "proto", "healthy", "rows",          "healthy_reason"};
const std::vector<std::string> passed_over = {"hardware",
                                              "nccl_version",
                                              "dtype",
                                              "redop",
                                              "env",
                                              "nchannels",
                                              "runtime",
                                              "launch_mode",
                                              "bw_derived",
                                              "time_us_derived",
                                              "busbw_meaning",
                                              "published_fit",
                                              "rows_dropped_zero_bytes",
                                              "note",
                                              "notes"};
const std::vector<std::string> row_keys = {"bytes",
                                           "time_us",
                                           "algbw_GBps",
                                           "busbw_GBps",
                                           "inplace_time_us",
                                           "inplace_algbw_GBps",
                                           "inplace_busbw_GBps"};

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Keys that are neither read nor passed over. One that was meant to be read is an error.
std::vector<std::string> strange_keys(const JsonReader& json, const std::vector<std::string>& read,
                                      const std::vector<std::string>& passed) {
  std::vector<std::string> missing;
  for (const std::string& key : read) {
    if (!json.json().contains(key)) missing.push_back(key);
  }
  std::vector<std::string> strange;
  for (const auto& [key, value] : json.members()) {
    if (has(read, key) || has(passed, key)) continue;
    const std::string meant = closest(key, missing);
    if (!meant.empty()) json.fail(fmt::format("unknown key \"{}\"", key), meant);
    strange.push_back(key);
  }
  return strange;
}

std::string text_of(const JsonReader& json, const char* key) {
  const auto text = json.find(key);
  return text ? text->string() : std::string();
}

std::optional<std::int64_t> count_of(const JsonReader& json, const char* key, std::int64_t least) {
  const auto count = json.find(key);
  if (!count) return std::nullopt;
  return count->integer(least, most_ranks);
}

// "NVIDIA/nccl-tests, issues/290"; a plain text stays as it is.
std::string source_of(const JsonReader& json) {
  const auto source = json.find("source");
  if (!source) return {};
  if (source->is_string()) return source->string();
  std::string text;
  for (const char* key : {"repo_or_site", "thread_or_url"}) {
    const std::string part = text_of(*source, key);
    text += (text.empty() || part.empty() ? "" : ", ") + part;
  }
  return text;
}

// Where the time of a row comes from.
enum class Told : std::uint8_t { time, bandwidth, in_place, nothing };

enum class Unit : std::uint8_t { microseconds, algorithm_rate, bus_rate };

struct TimeKey {
  const char* key;
  Unit unit;
  Told told;
};

// The first that a row has is taken.
constexpr std::array time_keys{
    TimeKey{"time_us", Unit::microseconds, Told::time},
    TimeKey{"algbw_GBps", Unit::algorithm_rate, Told::bandwidth},
    TimeKey{"busbw_GBps", Unit::bus_rate, Told::bandwidth},
    TimeKey{"inplace_time_us", Unit::microseconds, Told::in_place},
    TimeKey{"inplace_algbw_GBps", Unit::algorithm_rate, Told::in_place},
    TimeKey{"inplace_busbw_GBps", Unit::bus_rate, Told::in_place},
};

// Nothing for a bandwidth of 0, which is what those of small messages are printed as.
std::optional<Seconds> measured_time(const JsonReader& json, Unit unit, Bytes bytes,
                                     const MeasuredGroup& group) {
  const double figure = json.number();
  if (figure < 0) json.fail(fmt::format("{} is less than nothing", figure));
  double seconds = figure * 1e-6;
  if (unit != Unit::microseconds) {
    if (figure == 0 || (unit == Unit::bus_rate && !(group.kind && group.ranks))) return {};
    double rate = figure * 1e9;
    if (unit == Unit::bus_rate) rate /= bus_bandwidth_factor(*group.kind, *group.ranks);
    seconds = (bytes / Bandwidth(rate)).count();
  }
  if (!(seconds >= shortest_measured && seconds <= longest_measured)) {
    json.fail(fmt::format("{} makes {} s, which is no time of a collective", figure, seconds));
  }
  return Seconds(seconds);
}

Told read_row(const JsonReader& json, const MeasuredGroup& group, MeasuredRow& row) {
  row.bytes = Bytes(json.at("bytes").integer(1, largest_size));
  for (const TimeKey& known : time_keys) {
    const auto figure = json.find(known.key);
    if (!figure) continue;
    row.time = measured_time(*figure, known.unit, row.bytes, group);
    if (row.time) return known.told;
  }
  return Told::nothing;
}

void read_rows(const JsonReader& json, CollectiveMeasurement& measurement) {
  const std::vector<JsonReader> rows = json.at("rows").elements();
  if (rows.empty()) json.at("rows").fail("no row was measured");
  if (rows.size() > static_cast<std::size_t>(most_sizes)) {
    json.at("rows").fail(fmt::format("more than {} rows", most_sizes));
  }
  std::array<std::size_t, 4> count{};
  for (const JsonReader& row : rows) {
    static_cast<void>(strange_keys(row, row_keys, {}));
    const Told told = read_row(row, measurement.group, measurement.rows.emplace_back());
    ++count[static_cast<std::size_t>(told)];
  }
  const auto say = [&](Told told, const char* text) {
    const std::size_t some = count[static_cast<std::size_t>(told)];
    if (some == 0) return;
    measurement.notes.push_back(fmt::format("{} of {} measured rows {}", some, rows.size(), text));
  };
  say(Told::bandwidth, "print no time: it is worked out from a bandwidth that is printed rounded");
  say(Told::in_place, "have figures of the operation in place only");
  say(Told::nothing, "say nothing of the time");
}

// Of a TPU table, which has chips in place of ranks.
std::optional<std::int64_t> chips_of(const JsonReader& json) {
  const auto hardware = json.find("hardware");
  if (!hardware || !hardware->is_object()) return std::nullopt;
  return count_of(*hardware, "chips", 2);
}

// Thread blocks that NCCL was told to take at the least.
std::int64_t least_channels_of(const JsonReader& json) {
  const auto env = json.find("env");
  if (!env || !env->is_object()) return 0;
  for (const char* name : {"NCCL_MIN_CTAS", "NCCL_MIN_NCHANNELS"}) {
    const auto value = env->find(name);
    if (!value) continue;
    constexpr std::int64_t most = 64;
    if (!value->is_string()) return value->integer(1, most);
    const std::string text = value->string();
    std::int64_t count = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (error != std::errc() || end != text.data() + text.size() || count < 1 || count > most) {
      value->fail(fmt::format("\"{}\" is no number of channels from 1 to {}", text, most));
    }
    return count;
  }
  return 0;
}

// "2x2x1", of what may be told in words as well.
std::optional<std::string> topology_of(const JsonReader& json) {
  const auto hardware = json.find("hardware");
  if (!hardware || !hardware->is_object()) return std::nullopt;
  const auto topology = hardware->find("topology");
  if (!topology || !topology->is_string()) return std::nullopt;
  const std::string text = topology->string();
  const bool is_shape = !text.empty() && text.find_first_not_of("0123456789x") == std::string::npos;
  return is_shape ? std::optional(text) : std::nullopt;
}

MeasuredGroup read_group(const JsonReader& json, const MeasuredGroup& otherwise) {
  MeasuredGroup group;
  const auto kind = json.find("collective");
  if (kind && !(kind->is_string() && kind->string() == "unknown")) {
    group.kind = read_collective_kind(*kind);
  }
  group.ranks = count_of(json, "ranks", 2);
  if (!group.ranks) group.ranks = chips_of(json);
  group.nodes = count_of(json, "nodes", 1);
  const auto per_node = count_of(json, "gpus_per_node", 1);
  if (per_node && group.ranks && group.nodes && *per_node * *group.nodes != *group.ranks) {
    json.at("gpus_per_node")
        .fail(fmt::format("{} on each of {} are not {}", *per_node, counted(*group.nodes, "node"),
                          counted(*group.ranks, "rank")));
  }
  if (!group.kind) group.kind = otherwise.kind;
  if (!group.ranks) group.ranks = otherwise.ranks;
  if (!group.nodes) group.nodes = otherwise.nodes;
  return group;
}

std::optional<bool> read_health(const JsonReader& json) {
  const auto healthy = json.find("healthy");
  if (!healthy) return true;
  if (healthy->is_bool()) return healthy->boolean();
  static_cast<void>(healthy->choice({"unknown"}));
  return std::nullopt;
}

}  // namespace

CollectiveKind read_collective_kind(const JsonReader& json) {
  const std::string text = json.string();
  const std::string name = text.substr(0, text.find(" ("));
  std::vector<std::string> names;
  for (const NamedKind& named : named_kinds) {
    if (name == named.name) return named.kind;
    names.emplace_back(named.name);
  }
  const std::string suggestion = closest(name, names);
  if (!suggestion.empty()) {
    json.fail(fmt::format("unknown kind of collective \"{}\"", text), suggestion);
  }
  names.resize(plan_names);  // one spelling of each
  json.fail(
      fmt::format("unknown kind of collective \"{}\"; known are {}", text, fmt::join(names, ", ")));
}

CollectiveMeasurement read_measurement(const Json& document, const std::string& file,
                                       const MeasuredGroup& otherwise) {
  const JsonReader json(document, {file, ""});
  const std::vector<std::string> strange = strange_keys(json, read_keys, passed_over);
  CollectiveMeasurement measurement;
  measurement.file = file;
  measurement.id = text_of(json, "id");
  if (measurement.id.empty()) measurement.id = std::filesystem::path(file).stem().string();
  measurement.source = source_of(json);
  if (const auto machine = json.find("machine")) measurement.machine = machine->string();
  measurement.topology = topology_of(json);
  measurement.group = read_group(json, otherwise);
  measurement.algorithm = text_of(json, "algo");
  measurement.protocol = text_of(json, "proto");
  measurement.least_channels = least_channels_of(json);
  measurement.healthy = read_health(json);
  measurement.healthy_reason = text_of(json, "healthy_reason");
  if (const auto notes = json.find("notes"); notes && notes->is_array()) {
    for (const JsonReader& note : notes->elements()) measurement.notes.push_back(note.string());
  }
  read_rows(json, measurement);
  if (!strange.empty()) {
    measurement.notes.push_back(
        fmt::format("{} has keys that are not read: {}", file, fmt::join(strange, ", ")));
  }
  return measurement;
}

}  // namespace shardsim
