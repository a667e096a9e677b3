#include "experiments/experiment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/json.hpp"
#include "base/overloaded.hpp"
#include "experiments/collective_experiment.hpp"
#include "experiments/read_algorithms.hpp"
#include "experiments/read_placement.hpp"
#include "experiments/read_subject.hpp"
#include "experiments/sections.hpp"
#include "hardware_profiles/extend_profile.hpp"
#include "hardware_profiles/read_calibrations.hpp"

namespace shardsim {
namespace {

// A file may have any name, a document only UTF-8.
std::string stem_of(const std::filesystem::path& path) {
  const Json stem = path.stem().string();
  return Json::parse(stem.dump(-1, ' ', false, Json::error_handler_t::replace)).get<std::string>();
}

// On which it will run, where that is known before it is compiled: a program may bring its own.
const Mesh* known_mesh(const ExperimentSubject& subject) {
  const auto given = [](const auto& one) { return &one.partitioning.mesh; };
  return std::visit(Overloaded{[&](const ModelStep& model) { return given(model); },
                               [&](const TreeSubject& tree) { return given(tree); },
                               [](const ProgramStep& program) {
                                 return program.mesh ? &*program.mesh : nullptr;
                               }},
                    subject);
}

void read_machine(const Sections& sections, Experiment& experiment) {
  experiment.written.machine = {experiment.file, "/machine"};
  if (const auto machine = sections.find("machine")) {
    experiment.written.machine = machine->place();
    if (machine->is_string()) {
      experiment.machine = machine->string();
    } else {
      *experiment.machine_in_place = machine_in_place(*machine);
      experiment.machine = experiment.machine_in_place->at("name").get<std::string>();
    }
  }
  if (const auto topology = sections.find("topology")) experiment.topology = topology->string();
  if (const auto calibration = sections.find("calibration")) {
    experiment.calibrations = read_calibrations(*calibration);
    experiment.written.calibration = calibration->place();
  }
  if (const auto collectives = sections.find("collectives")) {
    experiment.collectives = read_collective_model(*collectives);
  }
  if (const auto algorithms = sections.find("algorithms")) {
    experiment.told = read_algorithms(*algorithms);
  }
  if (const auto placement = sections.find("placement")) {
    experiment.order = read_placement(*placement, experiment.directory);
    const Mesh* mesh = known_mesh(experiment.subject);
    if (mesh != nullptr && !mesh->axes().empty()) check_device_order(experiment.order, *mesh);
  }
  if (const auto slices = sections.find("slices")) {
    experiment.slices = read_slices(*slices, experiment.order);
  }
}

Json resolve(const Experiment& experiment, const Sections& sections) {
  Json resolved;
  resolved["name"] = experiment.name;
  resolved.update(subject_sections(experiment.subject, sections));
  if (!experiment.machine_in_place.is_null()) {
    resolved["machine"] = *experiment.machine_in_place;
  } else if (!experiment.machine.empty()) {
    resolved["machine"] = experiment.machine;
  }
  if (experiment.topology) resolved["topology"] = *experiment.topology;
  // These have no better words than those in which they were written.
  const auto as_written = [&](const char* key) {
    if (const auto given = sections.find(key)) resolved[key] = given->json();
  };
  as_written("calibration");
  as_written("slices");
  as_written("placement");
  if (experiment.collectives != CollectiveModel()) {
    resolved["collectives"] = name_of(experiment.collectives);
  }
  as_written("algorithms");
  return resolved;
}

Experiment read_one(const Sections& sections, const std::string& file) {
  Experiment experiment;
  const std::filesystem::path path(file);
  experiment.file = file;
  experiment.directory = path.parent_path().string();
  const auto name = sections.find("name");
  experiment.name = name ? name->string() : stem_of(path);
  experiment.subject = read_subject(sections, experiment.directory, experiment.written);
  read_machine(sections, experiment);
  require_served_axes(sections, experiment.subject);
  *experiment.resolved = resolve(experiment, sections);
  return experiment;
}

}  // namespace

std::vector<Experiment> read_experiments(const Json& document, const std::string& file,
                                         const std::vector<std::string>& wanted) {
  const Place root{file, ""};
  const JsonReader reader(document, root);
  std::vector<std::string> known = section_names();
  known.emplace_back("variants");
  reader.only_keys(known);

  Json base = document;
  base.erase("variants");
  const auto variants = reader.find("variants");
  if (!variants) return {read_one(Sections(base, nullptr, root, root), file)};

  std::set<std::string> names;
  for (const JsonReader& variant : variants->elements()) {
    variant.only_keys(section_names());
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
