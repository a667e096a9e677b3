#include <fmt/format.h>

#include <filesystem>

#include "base/overloaded.hpp"
#include "experiments/experiment.hpp"
#include "experiments/experiment_profile.hpp"
#include "experiments/missing_key.hpp"
#include "hardware_profiles/plausibility.hpp"
#include "hardware_profiles/profile_io.hpp"
#include "hardware_profiles/read_calibrations.hpp"

namespace shardsim {
namespace {

// A profile's name as it is, a path relative to the experiment.
std::string machine_of(const Experiment& experiment) {
  const std::filesystem::path path(experiment.machine);
  if (path.extension() != ".json" || path.is_absolute()) return experiment.machine;
  return (std::filesystem::path(experiment.directory) / path).string();
}

Machine machine_for(const Experiment& experiment, const Profile& profile, const Mesh& mesh) {
  const Place& place =
      experiment.slices == 1 ? experiment.written.machine : experiment.order.slices_place;
  return make_machine(profile, mesh.devices(), experiment.topology, place, experiment.slices);
}

// A step and what it runs on, which has the size of the step's mesh.
struct PlacedStep {
  Machine machine;
  CompiledStep step;
};

PlacedStep place_step(const Experiment& experiment, const Profile& profile) {
  // Making the machine takes less than making the plan: it comes first where the mesh is known.
  const auto machine_first = [&](const Partitioning& partitioning) {
    Machine machine = machine_for(experiment, profile, partitioning.mesh);
    return PlacedStep{std::move(machine), compile_experiment(experiment)};
  };
  return std::visit(
      Overloaded{[&](const ModelStep& model) { return machine_first(model.partitioning); },
                 [&](const TreeSubject& tree) { return machine_first(tree.partitioning); },
                 [&](const ProgramStep& program) {
                   CompiledStep step = compile_program(program, &profile);
                   Machine machine = machine_for(experiment, profile, step.plan.mesh);
                   return PlacedStep{std::move(machine), std::move(step)};
                 }},
      experiment.subject);
}

}  // namespace

Profile profile_of(const Experiment& experiment) {
  Profile profile = experiment.machine_in_place.is_null()
                        ? load_profile(machine_of(experiment), experiment.written.machine)
                        : read_profile(*experiment.machine_in_place, experiment.written.machine);
  if (experiment.calibrations) {
    set_calibrations(profile, *experiment.calibrations, experiment.written.calibration);
  }
  return profile;
}

SimulationOptions simulation_options(const Experiment& experiment, const SimulationOptions& given) {
  SimulationOptions options = given;
  options.collectives = experiment.collectives;
  options.order = experiment.order;
  options.costs.told = experiment.told;
  return options;
}

Prediction predict(const Experiment& experiment, const SimulationOptions& given) {
  if (experiment.machine.empty()) {
    throw InputError({experiment.file, ""}, missing_key("machine"));
  }
  // The machine first: reading it takes less than making the plan.
  const Profile profile = profile_of(experiment);
  if (profile.device.name.empty()) {
    throw InputError(experiment.written.machine,
                     "nothing is known of the network's devices; name one, as in device=h100");
  }
  Prediction prediction = predict_on(profile, experiment, given);
  if (profile.device.power_limit && !profile.device.power) {
    prediction.result.notes.push_back(fmt::format(
        "the device's power_limit is not modelled: the profile does not say what {} draws",
        profile.device.name));
  }
  const std::string assumed = assumed_numbers(profile);
  if (!assumed.empty()) prediction.result.notes.push_back(assumed);
  return prediction;
}

Prediction predict_on(const Profile& profile, const Experiment& experiment,
                      const SimulationOptions& given) try {
  auto [machine, step] = place_step(experiment, profile);
  Result result = simulate(step.plan, machine, simulation_options(experiment, given));
  const auto* cluster = std::get_if<ClusterProfile>(&profile.network);
  const auto* used = std::get_if<ClusterProfile>(&machine.profile.network);
  if (used != nullptr && used->devices_per_node.value != cluster->devices_per_node.value) {
    result.notes.push_back(fmt::format("nodes are used in part: {} devices per node",
                                       used->devices_per_node.source.note));
  }
  return {experiment, std::move(machine), std::move(step), std::move(result)};
} catch (const InputError& error) {
  rethrow_in(experiment.file, error);
}

}  // namespace shardsim
