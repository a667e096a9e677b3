#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <variant>

#include "base/json.hpp"
#include "launch/framework_files.hpp"
#include "launch/launch.hpp"
#include "workloads/models/build.hpp"

namespace shardsim {
namespace {

using Renamed = std::vector<std::pair<std::string, std::string>>;

Place place_of(const Experiment& experiment, const std::string& pointer) {
  return {experiment.file.empty() ? "command line" : experiment.file, pointer};
}

Json large_axes(const Json& mesh) {
  Json axes = Json::object();
  for (const auto& [axis, size] : mesh.items()) {
    if (size != 1) axes[axis] = size;
  }
  return axes;
}

std::optional<AxisRole> role_in(const Json& resolved, const std::string& axis) {
  const Json given = json_at(resolved, "roles." + axis);
  if (given.is_string()) {
    for (const AxisRole role :
         {AxisRole::batch, AxisRole::shard, AxisRole::model, AxisRole::context, AxisRole::stages,
          AxisRole::experts, AxisRole::etp}) {
      if (name_of(role) == given.get<std::string>()) return role;
    }
  }
  return AxisRoles().of(axis);
}

// Has the axis of ours, of that size, the name of the one of theirs, or its role?
bool is_axis(const Json& ours, const std::string& our_axis, const Json& theirs,
             const std::string& their_axis, bool by_name) {
  if (by_name) return our_axis == their_axis;
  return ours["mesh"][our_axis] == theirs["mesh"][their_axis] &&
         role_in(ours, our_axis) == role_in(theirs, their_axis);
}

// The experiment's axes under the names that the file's have; of one device: none.
Renamed renamed_axes(const Json& ours, const Json& theirs) {
  Renamed renamed;
  std::vector<std::string> left;
  for (const auto& [axis, size] : theirs["mesh"].items()) {
    if (size != 1) left.push_back(axis);
  }
  for (const auto& one : ours["mesh"].items()) {
    const std::string& axis = one.key();
    if (one.value() == 1) {
      renamed.emplace_back(axis, "");
      continue;
    }
    for (const bool by_name : {true, false}) {
      const auto found = std::find_if(left.begin(), left.end(), [&](const std::string& other) {
        return is_axis(ours, axis, theirs, other, by_name);
      });
      if (found == left.end()) continue;
      renamed.emplace_back(axis, *found);
      left.erase(found);
      break;
    }
  }
  return renamed;
}

std::string new_name(const std::string& name, const Renamed& renamed) {
  for (const auto& [from, to] : renamed) {
    if (name == from) return to;
    if (name.starts_with(from + ":(")) return to + name.substr(from.size());  // a part of it
  }
  return name;
}

// Every string that is an axis; what is no axis of more than one device falls out of lists.
Json with_names(const Json& json, const Renamed& renamed) {
  if (json.is_string()) return new_name(json.get<std::string>(), renamed);
  if (json.is_array()) {
    Json list = Json::array();
    for (const Json& one : json) {
      Json value = with_names(one, renamed);
      const bool gone =
          one.is_string() && value.get<std::string>().empty() && !one.get<std::string>().empty();
      if (!gone) list.push_back(std::move(value));
    }
    return list;
  }
  if (!json.is_object()) return json;
  Json object = Json::object();
  for (const auto& [key, value] : json.items()) object[key] = with_names(value, renamed);
  return object;
}

// Layers that are dealt out evenly, the first stages one more, need not be listed.
void leave_even_layers(Json& strategy) {
  const Json listed = json_at(strategy, "pipeline.layers");
  if (!listed.is_array() || listed.empty()) return;
  const auto counts = listed.get<std::vector<std::int64_t>>();
  const auto stages = static_cast<std::int64_t>(counts.size());
  const std::int64_t all = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  for (std::int64_t i = 0; i < stages; ++i) {
    if (counts[static_cast<std::size_t>(i)] != all / stages + (i < all % stages ? 1 : 0)) return;
  }
  strategy["pipeline"].erase("layers");
}

// What must be the same: all but the model, which is compared as it is built.
Json compared(const Json& resolved, const Renamed& renamed) {
  Json sections;
  sections["workload"] = resolved["workload"];
  sections["workload"].erase("model");
  for (const char* names : {"save", "offload"}) {  // in any order
    Json listed = json_at(sections, fmt::format("workload.rematerialization.{}", names));
    if (!listed.is_array()) continue;
    std::sort(listed.begin(), listed.end());
    sections["workload"]["rematerialization"][names] = std::move(listed);
  }
  // Without one it is the model's own, which is compared with it.
  if (json_at(resolved, "workload.dropout") == 0) sections["workload"].erase("dropout");
  sections["mesh"] = Json::object();
  const Json axes = large_axes(resolved["mesh"]);
  for (const auto& [axis, size] : axes.items()) sections["mesh"][new_name(axis, renamed)] = size;
  sections["strategy"] = with_names(resolved["strategy"], renamed);
  sections["strategy"].erase("layout");
  leave_even_layers(sections["strategy"]);
  if (resolved.contains("slices")) sections["slices"] = resolved["slices"];
  return sections;
}

struct Difference {
  std::string path;
  Json ours, theirs;
};

std::optional<Difference> difference(const Json& ours, const Json& theirs,
                                     const std::string& path) {
  if (ours.is_object() && theirs.is_object() && path != "mesh") {
    std::vector<std::string> keys;
    for (const Json* side : {&ours, &theirs}) {
      for (const auto& [key, value] : side->items()) keys.push_back(key);
    }
    for (const std::string& key : keys) {
      const Json left = ours.contains(key) ? ours[key] : Json();
      const Json right = theirs.contains(key) ? theirs[key] : Json();
      auto found = difference(left, right, path.empty() ? key : fmt::format("{}.{}", path, key));
      if (found) return found;
    }
    return std::nullopt;
  }
  if (ours == theirs && ours.dump() == theirs.dump()) return std::nullopt;
  if (ours == theirs && !ours.is_object()) return std::nullopt;
  return Difference{path, ours, theirs};
}

void require_launchable(const Experiment& experiment, const FrameworkFile& framework) {
  const auto* step = std::get_if<ModelStep>(&experiment.subject);
  if (step == nullptr || step->step.kind != StepKind::train) {
    throw InputError(
        place_of(experiment, ""),
        fmt::format("{} launches a training step of a model, and this is none", framework.file));
  }
  const std::string& name = step->partitioning.strategy.name;
  if (name == framework.strategy) return;
  std::string fitting;
  for (const FrameworkFile& other : framework_files()) {
    if (other.strategy == name) fitting = fmt::format("; {} can say it", other.file);
  }
  throw InputError(place_of(experiment, "/strategy"),
                   fmt::format("strategy \"{}\" is not \"{}\", which {} runs{}", name,
                               framework.strategy, framework.file, fitting));
}

std::int64_t divisor_up_to(std::int64_t number, std::int64_t most) {
  std::int64_t found = std::min(number, std::max<std::int64_t>(most, 1));
  while (number % found != 0) --found;
  return found;
}

// What the file must be told to be read again.
LaunchOptions options_of(const FrameworkFile& framework, const Json& resolved, const Json& config,
                         std::int64_t devices) {
  LaunchOptions options;
  options.devices = devices;
  if (framework.has_comments) return options;
  *options.model = config;
  options.sequence = integer_at(resolved, "workload.sequence", 0);
  if (*options.sequence == 0) options.sequence.reset();
  const Json axes = large_axes(resolved["mesh"]);
  options.mesh = axes.empty() ? "dp=1" : "";
  for (const auto& [axis, size] : axes.items()) {
    options.mesh +=
        fmt::format("{}{}={}", options.mesh.empty() ? "" : ",", axis, size.get<std::int64_t>());
  }
  for (const std::string_view path : framework.elsewhere) {
    const Json value = json_at(resolved, path);
    const bool usual = value.is_null() || value == "none" || value == false;
    if (!usual) options.settings.push_back({std::string(path), value.dump()});
  }
  return options;
}

// Of devices beside a file that does not say them.
std::string options_text(const LaunchOptions& options, const Experiment& experiment) {
  std::string text = " --model MODEL --mesh " + options.mesh;
  const auto& step = std::get<ModelStep>(experiment.subject);
  if (step.model->is_string()) {
    text = fmt::format(" --model {} --mesh {}", step.model->get<std::string>(), options.mesh);
  }
  if (options.sequence) text += fmt::format(" --sequence {}", *options.sequence);
  for (const auto& [path, value] : options.settings)
    text += fmt::format(" --set '{}={}'", path, value);
  return text;
}

// The model as it is built, under whatever name.
Json graph_of(const Experiment& experiment) {
  Json graph = compile_until(experiment, compile_passes().front().name);
  graph.erase("model");
  return graph;
}

void verify_same(const Experiment& experiment, const Experiment& read,
                 const FrameworkFile& framework) {
  const Json& ours = *experiment.resolved;
  const Json& theirs = *read.resolved;
  Json left = compared(ours, renamed_axes(ours, theirs));
  Json right = compared(theirs, renamed_axes(theirs, theirs));
  if (!left["strategy"].contains("kernels")) right["strategy"].erase("kernels");
  if (const auto found = difference(left, right, "")) {
    std::string pointer = "/" + found->path;
    std::replace(pointer.begin(), pointer.end(), '.', '/');
    throw InputError(place_of(experiment, pointer),
                     fmt::format("{} cannot say {}: launched from it the step would have {}",
                                 framework.file, found->ours.dump(), found->theirs.dump()));
  }
  if (graph_of(experiment) != graph_of(read)) {
    throw InputError(place_of(experiment, "/workload/model"),
                     fmt::format("{} cannot say all of this model: what it describes has other "
                                 "operations or sizes",
                                 framework.file));
  }
}

}  // namespace

WrittenLaunch write_launch(const Experiment& experiment, std::string_view name,
                           std::int64_t devices_of_node) {
  const FrameworkFile& framework = framework_file(name);
  if (framework.from_experiment == nullptr) {
    throw InputError(place_of(experiment, ""),
                     fmt::format("files of {} are read and not written", framework.name));
  }
  require_launchable(experiment, framework);
  const Json& resolved = *experiment.resolved;
  const auto& step = std::get<ModelStep>(experiment.subject);
  const ModelConfig model =
      load_model_config(JsonReader(*step.model, experiment.written.subject), experiment.directory);
  Facts facts(place_of(experiment, ""));
  framework.from_experiment(resolved, *model.json, experiment.written.subject, facts);
  const std::vector<WrittenKey> keys = keys_of_facts(facts, framework.keys);

  WrittenLaunch written;
  const std::int64_t devices = step.partitioning.mesh.devices();
  const LaunchOptions& options = written.options =
      options_of(framework, resolved, *model.json, devices);
  if (!resolved["strategy"].contains("kernels")) {
    written.notes.push_back(fmt::format(
        "the experiment says no \"kernels\"; {} has its framework's own", framework.file));
  }
  if (!experiment.machine.empty()) {
    written.notes.push_back(fmt::format("the machine, {}, is not in the file", experiment.machine));
  }
  if (!framework.has_comments) {
    written.notes.push_back(
        fmt::format("model, mesh and sequence are not in the file: shardsim "
                    "import {} {}{}",
                    framework.name, framework.file, options_text(options, experiment)));
  }
  FileHead head;
  head.lines.push_back(fmt::format("{}: {} on {} {}", experiment.name, model.name, devices,
                                   devices == 1 ? "device" : "devices"));
  for (const std::string& note : written.notes) head.lines.push_back(note);
  const std::int64_t in_node = divisor_up_to(devices, devices_of_node);
  head.launch = fmt::format("torchrun --nproc-per-node {} --nnodes {} pretrain_gpt.py", in_node,
                            devices / in_node);
  written.text = framework.print(keys, head);

  const std::string file(framework.file);
  const Imported imported = import_launch(name, written.text, file, written.options);
  verify_same(experiment, read_experiments(*imported.experiment, file).front(), framework);
  return written;
}

}  // namespace shardsim
