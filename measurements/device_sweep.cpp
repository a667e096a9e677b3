#include "measurements/device_sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/json.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "measurements/collective_measurement.hpp"
#include "plan/plan_io.hpp"

namespace shardsim {
namespace {

constexpr std::int64_t most_repeats = 1'000'000;
constexpr std::array kernel_classes{KernelClass::matmul, KernelClass::attention,
                                    KernelClass::attention_backward, KernelClass::memory};

void add_time(Json& json, const MeasuredTime& time) {
  json["time_s"] = time.median.count();
  if (time.repeats == 0) return;
  json["low_s"] = time.low.count();
  json["high_s"] = time.high.count();
  json["repeats"] = time.repeats;
}

Json collective_json(const SweptCollective& swept) {
  Json json = {{"kind", name_of(swept.kind)},
               {"group_size", swept.group_size},
               {"groups", swept.groups},
               {"payload_bytes", swept.payload.count()}};
  if (!swept.algorithm.empty()) json["algorithm"] = swept.algorithm;
  add_time(json, swept.time);
  return json;
}

Json kernel_json(const SweptKernel& swept) {
  Json json = {{"class", name_of(swept.kernel.kernel_class)},
               {"dtype", name_of(swept.kernel.dtype)},
               {"flops", swept.kernel.flops.count()},
               {"bytes", swept.kernel.bytes.count()}};
  if (swept.kernel.product) json["product"] = product_to_json(*swept.kernel.product);
  add_time(json, swept.time);
  return json;
}

Json copy_json(const SweptCopy& swept) {
  Json json = {{"direction", name_of(swept.direction)}, {"bytes", swept.bytes.count()}};
  add_time(json, swept.time);
  return json;
}

Json memory_json(const MemoryTaken& taken) {
  return {{"what", taken.what}, {"bytes", taken.bytes.count()}};
}

template <class Record>
std::vector<Json> jsons_of(const std::vector<Record>& records, Json (*json_of)(const Record&)) {
  std::vector<Json> jsons;
  for (const Record& record : records) jsons.push_back(json_of(record));
  return jsons;
}

// A line for each.
std::string lines(const std::vector<Json>& records) {
  std::string text = "[";
  for (const Json& record : records) {
    text += fmt::format("{}\n    {}", &record == records.data() ? "" : ",", record.dump());
  }
  return text + (records.empty() ? "]" : "\n  ]");
}

Seconds read_time(const JsonReader& json) {
  const double seconds = json.number();
  if (!(seconds > 0) || seconds > longest_measured)
    json.fail("expected a time above 0, in seconds");
  return Seconds(seconds);
}

MeasuredTime read_measured_time(const JsonReader& json) {
  const Seconds median = read_time(json.at("time_s"));
  const bool is_alone = !json.find("low_s") && !json.find("high_s") && !json.find("repeats");
  if (is_alone) return {median, median, median, 0};
  return {median, read_time(json.at("low_s")), read_time(json.at("high_s")),
          static_cast<int>(json.at("repeats").integer(1, most_repeats))};
}

SweptCollective read_swept_collective(const JsonReader& json, std::int64_t processes) {
  json.only_keys({"kind", "group_size", "groups", "payload_bytes", "algorithm", "time_s", "low_s",
                  "high_s", "repeats"});
  SweptCollective swept;
  swept.kind = read_collective_kind(json.at("kind"));
  swept.group_size = json.at("group_size").integer(2, most_ranks);
  swept.groups = json.at("groups").integer(1, most_ranks);
  if (swept.group_size * swept.groups > processes) {
    json.at("groups").fail(fmt::format("{} of {} are more than the {} processes", swept.groups,
                                       swept.group_size, processes));
  }
  swept.payload = Bytes(json.at("payload_bytes").integer(1, most_swept_bytes));
  if (const auto algorithm = json.find("algorithm")) swept.algorithm = algorithm->string();
  swept.time = read_measured_time(json);
  return swept;
}

SweptKernel read_swept_kernel(const JsonReader& json) {
  json.only_keys(
      {"class", "dtype", "flops", "bytes", "product", "time_s", "low_s", "high_s", "repeats"});
  SweptKernel swept;
  std::vector<std::string> names;
  for (const KernelClass one : kernel_classes) names.emplace_back(name_of(one));
  const std::string name = json.at("class").choice(names);
  for (const KernelClass one : kernel_classes) {
    if (name_of(one) == name) swept.kernel.kernel_class = one;
  }
  const auto dtype = parse_dtype(json.at("dtype").string());
  if (!dtype) json.at("dtype").fail("unknown type of elements");
  swept.kernel.dtype = *dtype;
  const double flops = json.at("flops").number();
  constexpr double most_flops = 1e24;
  if (!(flops >= 0) || flops > most_flops) json.at("flops").fail("an impossible number");
  swept.kernel.flops = Flops(flops);
  swept.kernel.bytes = Bytes(json.at("bytes").integer(0, most_swept_bytes));
  if (const auto product = json.find("product")) swept.kernel.product = read_product(*product);
  swept.time = read_measured_time(json);
  return swept;
}

SweptCopy read_swept_copy(const JsonReader& json) {
  json.only_keys({"direction", "bytes", "time_s", "low_s", "high_s", "repeats"});
  const std::string to_host(name_of(TaskKind::to_host));
  const std::string from_host(name_of(TaskKind::from_host));
  const bool leaves = json.at("direction").choice({to_host, from_host}) == to_host;
  return {leaves ? TaskKind::to_host : TaskKind::from_host,
          Bytes(json.at("bytes").integer(1, most_swept_bytes)), read_measured_time(json)};
}

MemoryTaken read_memory_taken(const JsonReader& json) {
  json.only_keys({"what", "bytes"});
  return {json.at("what").string(), Bytes(json.at("bytes").integer(0, most_swept_bytes))};
}

RunOn read_run_on(const JsonReader& json) {
  json.only_keys({"name", "library", "processes", "hosts", "host_of_rank"});
  RunOn on;
  on.backend = json.at("name").string();
  on.library = json.at("library").string();
  on.processes = json.at("processes").integer(1, most_ranks);
  for (const JsonReader& host : json.at("hosts").elements()) on.hosts.push_back(host.string());
  return on;
}

std::vector<std::int64_t> read_host_of_rank(const JsonReader& json, const RunOn& on) {
  const auto hosts = static_cast<std::int64_t>(on.hosts.size());
  if (hosts == 0) json.fail("there are no hosts");
  std::vector<std::int64_t> host_of_rank;
  std::set<std::int64_t> used;
  for (const JsonReader& host : json.elements()) {
    host_of_rank.push_back(host.integer(0, hosts - 1));
    used.insert(host_of_rank.back());
  }
  if (static_cast<std::int64_t>(host_of_rank.size()) != on.processes) {
    json.fail(fmt::format("of {} processes it has {}", on.processes, host_of_rank.size()));
  }
  if (static_cast<std::int64_t>(used.size()) != hosts) json.fail("a host has no process");
  return host_of_rank;
}

}  // namespace

DeviceSweep read_sweep(const Json& document, const std::string& file) {
  const JsonReader json(document, {file, ""});
  json.only_keys({"schema", "shardsim", "date", "source", "profile", "backend", "processor",
                  "device", "collectives", "kernels", "copies", "memory"});
  if (json.at("schema").string() != sweep_schema) {
    json.at("schema").fail(fmt::format("expected \"{}\"", sweep_schema));
  }
  DeviceSweep sweep;
  sweep.file = file;
  sweep.date = json.at("date").string();
  if (const auto source = json.find("source")) sweep.source = source->string();
  sweep.profile = json.at("profile").string();
  sweep.on = read_run_on(json.at("backend"));
  if (const auto hosts = json.at("backend").find("host_of_rank")) {
    sweep.host_of_rank = read_host_of_rank(*hosts, sweep.on);
  }
  const JsonReader processor = json.at("processor");
  processor.only_keys({"name", "cores"});
  sweep.processor = processor.at("name").string();
  sweep.cores = processor.at("cores").integer(1, most_ranks);
  if (const auto device = json.find("device")) {
    for (const auto& [what, value] : device->members()) sweep.device[what] = value.string();
  }
  for (const JsonReader& record : json.at("collectives").elements()) {
    sweep.collectives.push_back(read_swept_collective(record, sweep.on.processes));
  }
  for (const JsonReader& record : json.at("kernels").elements()) {
    sweep.kernels.push_back(read_swept_kernel(record));
  }
  if (const auto copies = json.find("copies")) {
    for (const JsonReader& record : copies->elements()) {
      sweep.copies.push_back(read_swept_copy(record));
    }
  }
  if (const auto memory = json.find("memory")) {
    for (const JsonReader& record : memory->elements()) {
      sweep.memory.push_back(read_memory_taken(record));
    }
  }
  return sweep;
}

std::int64_t processes_per_host(const DeviceSweep& sweep) {
  const Place place{sweep.file, "/backend/host_of_rank"};
  const auto hosts = static_cast<std::int64_t>(sweep.on.hosts.size());
  const std::int64_t processes = sweep.on.processes;
  if (hosts <= 1) return processes;
  if (sweep.host_of_rank.empty()) {
    if (hosts == processes) return 1;
    throw InputError(place, fmt::format("is not there: on which of the {} hosts the {} processes "
                                        "were is not known; measure anew",
                                        hosts, processes));
  }
  const std::int64_t per_host = processes / hosts;
  std::set<std::int64_t> filled;
  for (std::int64_t first = 0; first < processes; first += per_host) {
    const auto begin = sweep.host_of_rank.begin() + first;
    const auto end = begin + std::min(per_host, processes - first);
    const bool is_one = std::all_of(begin, end, [&](std::int64_t host) { return host == *begin; });
    if (processes % hosts == 0 && is_one && filled.insert(*begin).second) continue;
    throw InputError(place, fmt::format("ranks do not fill one host after the other, as many on "
                                        "each; start them so (mpirun --map-by slot)"));
  }
  return per_host;
}

std::string sweep_text(const DeviceSweep& sweep) {
  Json backend = {{"name", sweep.on.backend},
                  {"library", sweep.on.library},
                  {"processes", sweep.on.processes},
                  {"hosts", sweep.on.hosts}};
  if (!sweep.host_of_rank.empty()) backend["host_of_rank"] = sweep.host_of_rank;
  const Json processor = {{"name", sweep.processor}, {"cores", sweep.cores}};
  std::vector<std::pair<const char*, std::string>> parts = {
      {"schema", Json(sweep_schema).dump()},
      {"shardsim", Json(program_version).dump()},
      {"date", Json(sweep.date).dump()}};
  if (!sweep.source.empty()) parts.emplace_back("source", Json(sweep.source).dump());
  parts.insert(parts.end(), {{"profile", Json(sweep.profile).dump()},
                             {"backend", backend.dump()},
                             {"processor", processor.dump()},
                             {"device", Json(sweep.device).dump()},
                             {"collectives", lines(jsons_of(sweep.collectives, collective_json))},
                             {"kernels", lines(jsons_of(sweep.kernels, kernel_json))},
                             {"copies", lines(jsons_of(sweep.copies, copy_json))},
                             {"memory", lines(jsons_of(sweep.memory, memory_json))}});
  std::string text = "{";
  for (const auto& [key, value] : parts) {
    text += fmt::format("{}\n  \"{}\": {}", text == "{" ? "" : ",", key, value);
  }
  return text + "\n}\n";
}

}  // namespace shardsim
