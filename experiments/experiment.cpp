#include "experiments/experiment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "base/json.hpp"
#include "experiments/collective_experiment.hpp"
#include "experiments/missing_key.hpp"
#include "experiments/read_algorithms.hpp"
#include "experiments/read_placement.hpp"
#include "experiments/read_step.hpp"
#include "hardware_profiles/read_calibrations.hpp"
#include "plan/read_mesh.hpp"
#include "strategies/specs/placed_tree.hpp"

namespace shardsim {
namespace {

const std::vector<std::string> section_names = {
    "name",      "workload",   "program",     "like",        "mesh",   "roles",
    "devices",   "strategy",   "machine",     "topology",    "slices", "collectives",
    "placement", "algorithms", "calibration", "allow_uneven"};

// One experiment: the file's sections with a variant's laid over them, each read at the place that
// it was written at.
class Sections {
 public:
  Sections(const Json& base, const Json* variant, const Place& base_place,
           const Place& variant_place)
      : merged_(base) {
    for (const std::string& section : section_names) {
      places_[section] = base_place;
      if (variant != nullptr && variant->contains(section)) places_[section] = variant_place;
      places_[section].pointer += "/" + section;
    }
    if (variant != nullptr) merged_.merge_patch(*variant);
    JsonReader(merged_, variant != nullptr ? variant_place : base_place).only_keys(section_names);
    root_ = base_place;
  }

  [[nodiscard]] std::optional<JsonReader> find(const std::string& section) const {
    const auto found = merged_.find(section);
    if (found == merged_.end() || found->is_null()) return std::nullopt;
    return JsonReader(*found, places_.at(section));
  }
  [[nodiscard]] JsonReader at(const std::string& section) const {
    const auto found = find(section);
    if (!found) throw InputError(root_, missing_key(section));
    return *found;
  }

 private:
  Json merged_;
  Place root_;
  std::map<std::string, Place> places_;
};

void read_workload(const JsonReader& json, Experiment& experiment) {
  json.only_keys({"model", "tree", "step", "batch", "microbatches", "sequence", "metrics",
                  "outputs", "precision", "optimizer", "donate", "rematerialization"});
  if (const auto tree = json.find("tree")) {
    json.only_keys({"tree"});
    *experiment.tree = tree->json();
    experiment.model_place = tree->place();
    return;
  }
  const auto model = json.find("model");
  if (!model) json.fail(missing_key("model"));
  experiment.model = model->string();
  experiment.model_place = model->place();
  experiment.step_place = json.place();
  experiment.step = read_step(json);
}

Json workload_to_json(const Experiment& experiment) {
  if (!experiment.tree.is_null()) return {{"tree", *experiment.tree}};
  Json workload = {{"model", experiment.model}};
  workload.update(step_to_json(experiment.step));
  return workload;
}

Json resolve(const Experiment& experiment) {
  Json resolved;
  resolved["name"] = experiment.name;
  if (experiment.program.empty()) {
    resolved["workload"] = workload_to_json(experiment);
    resolved["strategy"] = strategy_to_json(experiment.strategy);
    resolved["mesh"] = mesh_to_json(experiment.mesh);  // without axes, too: one device
    if (experiment.allow_uneven) resolved["allow_uneven"] = true;
  } else {
    resolved["program"] = experiment.program;
    if (experiment.like_xla) resolved["like"] = "xla";
    if (!experiment.mesh.axes().empty()) resolved["mesh"] = mesh_to_json(experiment.mesh);
  }
  for (const auto& [axis, role] : experiment.roles.given()) resolved["roles"][axis] = name_of(role);
  if (!experiment.machine.empty()) resolved["machine"] = experiment.machine;
  if (experiment.topology) resolved["topology"] = *experiment.topology;
  if (!experiment.calibration.is_null()) resolved["calibration"] = *experiment.calibration;
  if (!experiment.slicing.is_null()) resolved["slices"] = *experiment.slicing;
  if (!experiment.placement.is_null()) resolved["placement"] = *experiment.placement;
  if (experiment.collectives != CollectiveModel()) {
    resolved["collectives"] = name_of(experiment.collectives);
  }
  if (!experiment.algorithms.is_null()) resolved["algorithms"] = *experiment.algorithms;
  return resolved;
}

// A file may have any name, a document only UTF-8.
std::string stem_of(const std::filesystem::path& path) {
  const Json stem = path.stem().string();
  return Json::parse(stem.dump(-1, ' ', false, Json::error_handler_t::replace)).get<std::string>();
}

// What a parameter tree says of mesh and specs, as the sections that the experiment leaves out.
Json recorded_placement(const Sections& sections, const Experiment& experiment) {
  Json recorded = Json::object();
  if (experiment.tree.is_null() || (sections.find("mesh") && sections.find("strategy")))
    return recorded;
  const PlacedTree placed =
      read_placed_tree(JsonReader(*experiment.tree, experiment.model_place), experiment.directory);
  if (!placed.mesh) return recorded;
  recorded["mesh"] = mesh_to_json(*placed.mesh);
  Json specs = Json::object();
  for (std::size_t i = 0; i < placed.specs.size(); ++i) {
    if (placed.specs[i]) specs[placed.tree.leaves[i].name] = to_json(*placed.specs[i]);
  }
  recorded["strategy"] = {{"name", "specs"}, {"specs", specs}, {"default", Json::array()}};
  return recorded;
}

// A mesh as big_vision's configurations write it, as an object with sizes: [["data", -1]] of
// "devices": 8 is {"data": 8}. -1 is what the other axes leave of the devices, as numpy's reshape
// has it.
Json mesh_with_sizes(const JsonReader& mesh, const std::optional<JsonReader>& devices) {
  Json sizes = mesh.json();
  if (mesh.is_array() && !sizes.empty()) {
    sizes = Json::object();
    for (const JsonReader& pair : mesh.elements()) {
      const bool is_pair = pair.is_array() && pair.json().size() == 2 && pair.json()[0].is_string();
      if (!is_pair) return mesh.json();  // an error of read_mesh
      const auto name = pair.json()[0].get<std::string>();
      if (sizes.contains(name)) pair.fail(fmt::format("axis \"{}\" is given twice", name));
      sizes[name] = pair.json()[1];
    }
  }
  if (!sizes.is_object()) return sizes;
  std::string open;
  std::int64_t others = 1;
  for (const auto& [name, size] : sizes.items()) {
    if (!size.is_number_integer()) return sizes;
    if (size == -1 && open.empty()) {
      open = name;
    } else if (size < 1 || size > most_devices / others) {
      return sizes;  // an error of read_mesh
    } else {
      others *= size.get<std::int64_t>();
    }
  }
  if (open.empty()) return sizes;
  if (!devices) {
    mesh.fail(
        fmt::format("axis \"{}\" of size -1 takes what the others leave of \"devices\", which "
                    "is not given",
                    open));
  }
  const std::int64_t all = devices->integer(1, most_devices);
  if (all % others != 0) {
    devices->fail(fmt::format("{} devices are no multiple of the {} of the axes beside \"{}\"", all,
                              others, open));
  }
  sizes[open] = all / others;
  return sizes;
}

void read_machine(const Sections& sections, Experiment& experiment) {
  experiment.machine_place = {experiment.file, "/machine"};
  if (const auto machine = sections.find("machine")) {
    experiment.machine = machine->string();
    experiment.machine_place = machine->place();
  }
  if (const auto topology = sections.find("topology")) experiment.topology = topology->string();
  if (const auto calibration = sections.find("calibration")) {
    *experiment.calibration = calibration->json();
    experiment.calibrations = read_calibrations(*calibration);
    experiment.calibration_place = calibration->place();
  }
  if (const auto collectives = sections.find("collectives")) {
    experiment.collectives = read_collective_model(*collectives);
  }
  if (const auto algorithms = sections.find("algorithms")) {
    *experiment.algorithms = algorithms->json();
    experiment.told = read_algorithms(*algorithms);
  }
  if (const auto placement = sections.find("placement")) {
    *experiment.placement = placement->json();
    experiment.order = read_placement(*placement, experiment.directory);
    if (!experiment.mesh.axes().empty()) check_device_order(experiment.order, experiment.mesh);
  }
  if (const auto slices = sections.find("slices")) {
    *experiment.slicing = slices->json();
    experiment.slices = read_slices(*slices, experiment.order);
  }
}

// A program says itself what is computed and how it is split.
void read_program(const Sections& sections, const JsonReader& program, Experiment& experiment) {
  for (const char* other : {"workload", "strategy", "roles", "devices", "allow_uneven"}) {
    if (const auto given = sections.find(other)) {
      given->fail(fmt::format("a program has its own {}: leave one of them out", other));
    }
  }
  experiment.program = program.string();
  if (experiment.program.empty()) program.fail("names no file");
  if (const auto like = sections.find("like")) experiment.like_xla = like->choice({"xla"}) == "xla";
  experiment.model_place = program.place();
  if (const auto mesh = sections.find("mesh")) experiment.mesh = read_mesh(*mesh);
  read_machine(sections, experiment);
  *experiment.resolved = resolve(experiment);
}

Experiment read_one(const Sections& sections, const std::string& file) {
  Experiment experiment;
  const std::filesystem::path path(file);
  experiment.file = file;
  experiment.directory = path.parent_path().string();
  const auto name = sections.find("name");
  experiment.name = name ? name->string() : stem_of(path);
  if (const auto program = sections.find("program")) {
    read_program(sections, *program, experiment);
    return experiment;
  }
  if (const auto like = sections.find("like")) like->fail("is for a \"program\"");
  read_workload(sections.at("workload"), experiment);
  const Json recorded = recorded_placement(sections, experiment);
  const auto section = [&](const std::string& key) {
    const auto given = sections.find(key);
    if (given || !recorded.contains(key)) return given ? *given : sections.at(key);
    return JsonReader(recorded[key], experiment.model_place);
  };
  const JsonReader given_mesh = section("mesh");
  const Json sizes = mesh_with_sizes(given_mesh, sections.find("devices"));
  const JsonReader mesh(sizes, given_mesh.place());
  experiment.mesh = read_mesh(mesh);
  if (const auto roles = sections.find("roles")) {
    experiment.roles = AxisRoles(*roles, experiment.mesh);
  }
  if (const auto devices = sections.find("devices")) {
    const std::int64_t expected = devices->integer(1, most_devices);
    if (expected != experiment.mesh.devices()) {
      devices->fail(fmt::format("mesh {} has {} devices, not {}", describe(experiment.mesh),
                                experiment.mesh.devices(), expected));
    }
  }
  experiment.strategy = read_strategy(section("strategy"), experiment.mesh, experiment.roles);
  if (const auto uneven = sections.find("allow_uneven"))
    experiment.allow_uneven = uneven->boolean();
  read_machine(sections, experiment);
  if (experiment.tree.is_null()) {
    require_served_axes(experiment.strategy, experiment.mesh, experiment.roles, mesh);
  }
  *experiment.resolved = resolve(experiment);
  return experiment;
}

}  // namespace

std::vector<Experiment> read_experiments(const Json& document, const std::string& file,
                                         const std::vector<std::string>& wanted) {
  const Place root{file, ""};
  const JsonReader reader(document, root);
  std::vector<std::string> known = section_names;
  known.emplace_back("variants");
  reader.only_keys(known);

  Json base = document;
  base.erase("variants");
  const auto variants = reader.find("variants");
  if (!variants) return {read_one(Sections(base, nullptr, root, root), file)};

  std::set<std::string> names;
  for (const JsonReader& variant : variants->elements()) {
    variant.only_keys(section_names);
    const JsonReader name = variant.at("name");
    if (!names.insert(name.string()).second) {
      name.fail(fmt::format("another variant is called \"{}\"", name.string()));
    }
  }
  if (names.empty()) variants->fail("there are no variants in the list");
  const bool all_there = std::all_of(wanted.begin(), wanted.end(),
                                     [&](const std::string& name) { return names.contains(name); });
  std::vector<Experiment> experiments;
  for (const JsonReader& variant : variants->elements()) {
    const std::string name = variant.at("name").string();
    const bool is_wanted = std::find(wanted.begin(), wanted.end(), name) != wanted.end();
    if (all_there && !wanted.empty() && !is_wanted) continue;
    experiments.push_back(read_one(Sections(base, &variant.json(), root, variant.place()), file));
  }
  return experiments;
}

}  // namespace shardsim
