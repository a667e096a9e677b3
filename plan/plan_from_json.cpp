#include <fmt/format.h>

#include <limits>
#include <map>
#include <stdexcept>

#include "base/json.hpp"
#include "base/stacks.hpp"
#include "plan/plan_io.hpp"
#include "plan/read_mesh.hpp"

namespace shardsim {
namespace {

constexpr std::int64_t most_bytes = std::int64_t{1} << 62;
constexpr std::int64_t most_places = 1 << 30;

template <class Number>
Number read_index(const JsonReader& json, std::size_t size, std::string_view what) {
  if (size == 0) json.fail(fmt::format("there are no {}", what));
  return static_cast<Number>(json.integer(0, static_cast<std::int64_t>(size) - 1));
}

std::int32_t read_int32(const JsonReader& json, std::int64_t min) {
  return static_cast<std::int32_t>(json.integer(min, std::numeric_limits<std::int32_t>::max()));
}

Bytes read_bytes(const JsonReader& json) { return Bytes(json.integer(0, most_bytes)); }

Flops read_flops(const JsonReader& json) {
  const double flops = json.number();
  if (flops < 0) json.fail(fmt::format("{} is negative", flops));
  return Flops(flops);
}

// One of the values Enum(0) .. last, by its name.
template <class Enum>
Enum read_enum(const JsonReader& json, Enum last) {
  std::vector<std::string> names;
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    names.emplace_back(name_of(static_cast<Enum>(i)));
  }
  const std::string name = json.choice(names);
  int index = 0;
  while (names[static_cast<std::size_t>(index)] != name) ++index;
  return static_cast<Enum>(index);
}

DType read_dtype(const JsonReader& json) {
  const auto dtype = parse_dtype(json.string());
  if (!dtype) json.fail(fmt::format("unknown dtype \"{}\"", json.string()));
  return *dtype;
}

std::vector<std::string> read_strings(const JsonReader& json) {
  std::vector<std::string> result;
  for (const JsonReader& element : json.elements()) result.push_back(element.string());
  return result;
}

PlanSubject read_subject(const JsonReader& json) {
  json.only_keys({"model", "strategy", "parameters", "tokens_per_step", "model_flops",
                  "model_flops_full_attention"});
  const JsonReader needed = json.at("model_flops");
  // Plans of shardsim 0.1 have one figure for both.
  const JsonReader full = json.find("model_flops_full_attention").value_or(needed);
  return {json.at("model").string(),
          json.at("strategy").string(),
          json.at("parameters").integer(0, most_bytes),
          json.at("tokens_per_step").integer(0, most_bytes),
          read_flops(needed),
          read_flops(full)};
}

std::vector<std::vector<std::int64_t>> read_groups(const JsonReader& json, const Mesh& mesh) {
  std::vector<std::vector<std::int64_t>> groups;
  for (const JsonReader& group : json.elements()) {
    groups.emplace_back();
    for (const JsonReader& device : group.elements()) {
      groups.back().push_back(device.integer(0, mesh.devices() - 1));
    }
  }
  return groups;
}

// Where axes say what the groups are, the written groups must be those.
void check_derived_groups(const JsonReader& json, const Plan& plan, const Collective& collective) {
  bool same = false;
  if (json.is_string()) {
    same = json.string() == plan.mesh.iota_groups(collective.axes);
  } else {
    const auto groups = read_groups(json, plan.mesh);
    const std::int64_t expected = plan.mesh.devices() / Mesh::size_of(collective.axes);
    // The number first: a hostile mesh would have billions of groups to list.
    same = static_cast<std::int64_t>(groups.size()) == expected &&
           groups == plan.mesh.groups(collective.axes);
  }
  if (!same) json.fail("these are not the groups of the axes");
}

std::vector<std::pair<std::int64_t, std::int64_t>> read_pairs(const JsonReader& json,
                                                              const Mesh& mesh) {
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs;
  for (const JsonReader& pair : json.elements()) {
    const auto ends = pair.elements();
    if (ends.size() != 2) pair.fail("expected a pair of source and target");
    pairs.emplace_back(ends[0].integer(0, mesh.devices() - 1),
                       ends[1].integer(0, mesh.devices() - 1));
  }
  return pairs;
}

RowVisits read_visits(const JsonReader& json) {
  json.only_keys({"places", "visited", "multiprocessors", "kernels", "combines", "row_bytes"});
  const std::int64_t places = json.at("places").integer(1, most_places);
  return {places,
          json.at("visited").integer(1, places),
          static_cast<std::int32_t>(json.at("multiprocessors").integer(1, most_places)),
          read_enum(json.at("kernels"), RowKernels::hybridep),
          json.at("combines").boolean(),
          Bytes(json.at("row_bytes").integer(1, most_bytes))};
}

Collective read_collective(const JsonReader& json, const Plan& plan) {
  json.only_keys({"kind", "axes", "groups", "source_target_pairs", "dtype", "payload_bytes",
                  "group_size", "count", "parts", "reason", "remedy", "parallelism", "visits",
                  "contracted", "awaited"});
  Collective collective;
  collective.kind = read_enum(json.at("kind"), CollectiveKind::broadcast);
  for (const JsonReader& axis : json.at("axes").elements()) {
    const auto part = plan.mesh.parse(axis.string());
    if (!part) axis.fail(fmt::format("no axis \"{}\" in the mesh", axis.string()));
    collective.axes.push_back(*part);
  }
  if (const auto pairs = json.find("source_target_pairs")) {
    collective.source_targets = read_pairs(*pairs, plan.mesh);
  }
  collective.dtype = read_dtype(json.at("dtype"));
  collective.payload = read_bytes(json.at("payload_bytes"));
  for (const JsonReader& part : json.at("parts").elements()) {
    part.only_keys({"tensor", "payload_bytes"});
    collective.parts.push_back({part.at("tensor").string(), read_bytes(part.at("payload_bytes"))});
  }
  collective.reason = json.at("reason").string();
  if (const auto remedy = json.find("remedy")) collective.remedy = remedy->string();
  if (const auto of = json.find("parallelism")) {
    collective.parallelism = read_enum(*of, Parallelism::scalars);
  }
  if (const auto visits = json.find("visits")) collective.visits = read_visits(*visits);
  if (const auto awaited = json.find("awaited")) collective.awaited = awaited->boolean();
  if (const auto contracted = json.find("contracted")) {
    collective.contracted = contracted->integer(0, std::numeric_limits<std::int64_t>::max());
  }
  if (collective.axes.empty()) collective.groups = read_groups(json.at("groups"), plan.mesh);
  return collective;
}

Kernel read_kernel(const JsonReader& json) {
  json.only_keys({"op", "class", "dtype", "flops", "bytes", "product", "aligned", "implementation",
                  "launches", "added_bytes"});
  Kernel kernel{json.at("op").string(), read_enum(json.at("class"), KernelClass::host),
                read_dtype(json.at("dtype")), read_flops(json.at("flops")),
                read_bytes(json.at("bytes"))};
  if (const auto product = json.find("product")) {
    kernel.product = read_product(*product);
    if (const auto aligned = json.find("aligned")) kernel.product->aligned = aligned->boolean();
  }
  if (const auto made = json.find("implementation")) kernel.implementation = made->string();
  if (const auto launches = json.find("launches")) {
    constexpr std::int64_t most = 1000;
    kernel.launches = static_cast<std::int32_t>(launches->integer(0, most));
  }
  if (const auto added = json.find("added_bytes")) kernel.added = read_bytes(*added);
  return kernel;
}

Transfer read_transfer(const JsonReader& json, std::size_t programs) {
  json.only_keys({"peer_program", "sends", "dtype", "payload_bytes", "reason", "channel"});
  const auto channel = json.find("channel");
  return {read_index<int>(json.at("peer_program"), programs, "programs"),
          json.at("sends").boolean(),
          read_dtype(json.at("dtype")),
          read_bytes(json.at("payload_bytes")),
          json.at("reason").string(),
          channel ? read_index<std::int32_t>(*channel, most_channels, "channels") : 0};
}

using NameIndex = std::map<std::string, std::int32_t>;

std::int32_t read_name(const JsonReader& json, const NameIndex& names) {
  const auto found = names.find(json.string());
  if (found == names.end()) json.fail(fmt::format("\"{}\" is not in /names", json.string()));
  return found->second;
}

void read_task(const JsonReader& json, const Plan& plan, const NameIndex& names, Program& program) {
  json.only_keys(
      {"kind", "work", "name", "layer", "microbatch", "phase", "recompute", "stream", "after"});
  Task task;
  task.kind = read_enum(json.at("kind"), TaskKind::from_host);
  const JsonReader work = json.at("work");
  if (task.kind == TaskKind::collective) {
    task.work = read_index<std::int32_t>(work, plan.collectives.size(), "collectives");
  } else if (task.kind == TaskKind::transfer) {
    task.work = read_index<std::int32_t>(work, plan.transfers.size(), "transfers");
  } else {
    task.work = read_index<std::int32_t>(work, plan.kernels.size(), "kernels");
  }
  task.name = read_name(json.at("name"), names);
  task.layer = read_int32(json.at("layer"), -1);
  task.microbatch = read_int32(json.at("microbatch"), 0);
  task.phase = read_enum(json.at("phase"), Phase::optimizer);
  task.recompute = json.at("recompute").boolean();
  task.stream = read_index<std::uint8_t>(json.at("stream"), program.streams.size(), "streams");
  std::vector<TaskId> after;
  for (const JsonReader& before : json.at("after").elements()) {
    after.push_back(read_index<TaskId>(before, program.tasks.size(), "earlier tasks"));
  }
  (void)program.add_task(task, after);
}

void read_buffer(const JsonReader& json, const NameIndex& names, Program& program) {
  json.only_keys({"name", "layer", "category", "bytes", "allocated_by", "freed_after"});
  Buffer buffer;
  buffer.name = read_name(json.at("name"), names);
  buffer.layer = read_int32(json.at("layer"), -1);
  buffer.category = read_enum(json.at("category"), BufferCategory::cache);
  if (const auto on_host = json.find("on_host")) buffer.on_host = on_host->boolean();
  buffer.bytes = read_bytes(json.at("bytes"));
  const JsonReader allocated_by = json.at("allocated_by");
  if (!allocated_by.is_null()) {
    buffer.allocated_by = read_index<TaskId>(allocated_by, program.tasks.size(), "tasks");
  }
  std::vector<TaskId> frees;
  for (const JsonReader& last : json.at("freed_after").elements()) {
    frees.push_back(read_index<TaskId>(last, program.tasks.size(), "tasks"));
    if (frees.back() < buffer.allocated_by) last.fail("freed before it is allocated");
  }
  program.add_buffer(buffer, frees);
}

Program read_program(const JsonReader& json, const Plan& plan, const NameIndex& names) {
  json.only_keys({"name", "devices", "streams", "tasks", "buffers"});
  Program program;
  program.name = json.at("name").string();
  for (const JsonReader& device : json.at("devices").elements()) {
    program.devices.push_back(device.integer(0, plan.mesh.devices() - 1));
  }
  program.streams = read_strings(json.at("streams"));
  if (program.streams.size() > std::numeric_limits<std::uint8_t>::max()) {
    json.at("streams").fail("more than 255 streams");
  }
  for (const JsonReader& task : json.at("tasks").elements()) read_task(task, plan, names, program);
  for (const JsonReader& buffer : json.at("buffers").elements()) {
    read_buffer(buffer, names, program);
  }
  return program;
}

Padding read_padding(const JsonReader& json) {
  json.only_keys({"tensor", "dimension", "size", "shards", "padded_size", "instances",
                  "wasted_bytes_per_device"});
  return {json.at("tensor").string(),
          read_int32(json.at("dimension"), 0),
          json.at("size").integer(1, most_bytes),
          json.at("shards").integer(1, most_bytes),
          json.at("padded_size").integer(1, most_bytes),
          json.at("instances").integer(1, most_bytes),
          read_bytes(json.at("wasted_bytes_per_device"))};
}

// The rest of the rules, and what the document says twice.
void check(const JsonReader& document, const Plan& plan) {
  try {
    verify(plan);
  } catch (const std::logic_error& error) {
    document.fail(error.what());
  }
  if (document.at("devices").integer(1, most_devices) != plan.mesh.devices()) {
    document.at("devices").fail(fmt::format("the mesh has {} devices", plan.mesh.devices()));
  }
  const auto counts = executions(plan);
  const auto collectives = document.at("collectives").elements();
  for (std::size_t i = 0; i < collectives.size(); ++i) {
    const Collective& collective = plan.collectives[i];
    if (!collective.axes.empty()) {
      check_derived_groups(collectives[i].at("groups"), plan, collective);
    }
    const std::int64_t size = group_size(plan, collective);
    if (collectives[i].at("group_size").integer(1, most_devices) != size) {
      collectives[i].at("group_size").fail(fmt::format("the groups have {} devices", size));
    }
    if (collectives[i].at("count").integer(0, most_bytes) != counts[i]) {
      collectives[i].at("count").fail(fmt::format("the tasks execute it {} times", counts[i]));
    }
  }
}

}  // namespace

Product read_product(const JsonReader& json) {
  std::vector<std::int64_t> sizes;
  for (const JsonReader& size : json.elements()) sizes.push_back(size.integer(1, longest_side));
  if (sizes.size() != 4) json.fail("expected [batch, m, n, k]");
  return {sizes[0], sizes[1], sizes[2], sizes[3]};
}

Plan plan_from_json(const JsonReader& document) {
  document.only_keys({"schema", "shardsim", "subject", "mesh", "devices", "collectives", "kernels",
                      "transfers", "names", "programs", "padding", "notes", "issued_by",
                      "layers_are_graphs", "parts_are_graphs", "awaits_messages"});
  (void)document.at("schema").choice({"shardsim/plan/1"});
  Plan plan;
  plan.subject = read_subject(document.at("subject"));
  plan.mesh = read_mesh(document.at("mesh"));
  if (const auto stack = document.find("issued_by")) plan.issued_by = stack->choice(stacks());
  if (const auto whole = document.find("layers_are_graphs")) {
    plan.layers_are_graphs = whole->boolean();
  }
  if (const auto parts = document.find("parts_are_graphs")) {
    plan.parts_are_graphs = parts->boolean();
  }
  if (const auto awaits = document.find("awaits_messages")) {
    plan.awaits_messages = awaits->boolean();
  }
  for (const JsonReader& json : document.at("collectives").elements()) {
    plan.collectives.push_back(read_collective(json, plan));
  }
  for (const JsonReader& json : document.at("kernels").elements()) {
    plan.kernels.push_back(read_kernel(json));
  }
  const auto programs = document.at("programs").elements();
  for (const JsonReader& json : document.at("transfers").elements()) {
    plan.transfers.push_back(read_transfer(json, programs.size()));
  }
  NameIndex names;
  for (const JsonReader& json : document.at("names").elements()) {
    plan.names.push_back(json.string());
    const auto index = static_cast<std::int32_t>(plan.names.size() - 1);
    if (!names.emplace(plan.names.back(), index).second) json.fail("this name is there already");
  }
  for (const JsonReader& json : programs) {
    plan.programs.push_back(read_program(json, plan, names));
  }
  for (const JsonReader& json : document.at("padding").elements()) {
    plan.padding.push_back(read_padding(json));
  }
  plan.notes = read_strings(document.at("notes"));
  check(document, plan);
  return plan;
}

}  // namespace shardsim
