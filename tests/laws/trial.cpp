#include "trial.hpp"

#include <algorithm>
#include <map>
#include <ostream>

#include "experiments/experiment_profile.hpp"
#include "tests/workloads/scratch_folder.hpp"
#include "workloads/models/build.hpp"

namespace shardsim::laws {
namespace {

const std::vector<std::string> model_axes = {"model", "tp", "tensor"};

bool splits_the_model(const Axis& axis) {
  return std::find(model_axes.begin(), model_axes.end(), axis.name) != model_axes.end();
}

// A shipped model's config.json with another number of layers, as a file.
std::string model_file(const std::string& model, std::int64_t layers) {
  static const test::ScratchFolder folder;
  const std::string name = model + "-" + std::to_string(layers) + ".json";
  static std::map<std::string, std::string> written;
  const auto [path, is_new] = written.try_emplace(name);
  if (!is_new) return path->second;
  Json config = *load_model_config(model, "", {}).json;
  for (const char* key : {"num_hidden_layers", "n_layer", "depth"}) {
    if (config.contains(key)) config[key] = layers;
  }
  path->second = folder.write(name, config.dump());
  return path->second;
}

// Sizes of up to three axes: legal slices of all TPUs have a power of two of devices.
std::int64_t arbitrary_size() { return std::int64_t{1} << *rc::gen::inRange(0, 4); }

Json arbitrary_fields() {
  Json fields = Json::object();
  fields["reshard_after_forward"] = *rc::gen::arbitrary<bool>();
  fields["gather"] = *rc::gen::element<std::string>("unit", "unit", "tensor");
  fields["prefetch"] = *rc::gen::inRange(0, 3);
  fields["reduce_each_microbatch"] = *rc::gen::element<std::string>("all", "shards", "none");
  return fields;
}

// Mesh and strategy, which belong together.
void add_layout(Trial& trial) {
  const auto recipe =
      *rc::gen::element<std::string>("dp", "fsdp", "hsdp", "tp", "fsdp+tp", "dp+tp");
  const bool short_names = *rc::gen::arbitrary<bool>();
  const std::string data = short_names ? "dp" : "data";
  const std::string model = short_names ? "tp" : "model";
  const bool shards = recipe.find("sdp") != std::string::npos;
  if (recipe == "dp" || recipe == "dp+tp" || recipe == "hsdp") {
    trial.mesh.push_back({data, arbitrary_size()});
  }
  if (shards) trial.mesh.push_back({"fsdp", arbitrary_size()});
  const bool splits = recipe.find("tp") != std::string::npos;
  if (splits) trial.mesh.push_back({model, arbitrary_size()});
  trial.strategy = arbitrary_fields();
  trial.strategy["name"] = recipe == "dp+tp" ? "tp" : recipe;
  if (shards) trial.strategy["shard_axis"] = "fsdp";
  // Some in slices over pairs: a divisor of 4 and of 8 devices that is neither 1 nor all.
  const bool keeps_pairs = *rc::gen::arbitrary<bool>();
  if (shards && keeps_pairs && trial.strategy["gather"] == "unit") {
    for (const Axis& axis : trial.mesh) {
      if (axis.name == "fsdp" && axis.size > 2) trial.strategy["reshard_after_forward"] = 2;
    }
  }
  if (!shards) trial.strategy["zero_stage"] = *rc::gen::inRange(0, 3);
  if (splits) trial.strategy["sequence_parallel"] = *rc::gen::arbitrary<bool>();
}

const std::vector<std::string> machines = {"dgx-h100",
                                           "dgx-a100",
                                           "dgx-b200",
                                           "gb200-nvl72",
                                           "mi300x",
                                           "pcie-a100",
                                           "tpu-v3",
                                           "tpu-v4",
                                           "tpu-v5e",
                                           "tpu-v5p",
                                           "tpu-v6e",
                                           "tpu7x",
                                           "switch(bandwidth=50GB/s,latency=1us,device=h100)"};

std::string arbitrary_machine(std::int64_t devices) {
  std::vector<std::string> large_enough;
  for (const std::string& machine : machines) {
    if (can_have(machine, devices)) large_enough.push_back(machine);
  }
  return *rc::gen::elementOf(large_enough);
}

}  // namespace

bool can_have(const std::string& machine, std::int64_t devices) {
  static std::map<std::pair<std::string, std::int64_t>, bool> known;
  const auto [found, is_new] = known.try_emplace({machine, devices}, false);
  if (!is_new) return found->second;
  try {
    (void)make_machine(load_profile(machine, {}), devices, std::nullopt, {});
    found->second = true;
  } catch (const InputError&) {  // no slice of a torus has so many
  }
  return found->second;
}

bool Trial::has_sequence() const { return model != "vit-b16"; }

std::int64_t Trial::model_parallel() const {
  std::int64_t product = 1;
  for (const Axis& axis : mesh) product *= splits_the_model(axis) ? axis.size : 1;
  return product;
}

std::int64_t Trial::replicas() const {
  std::int64_t product = 1;
  for (const Axis& axis : mesh) product *= splits_the_model(axis) ? 1 : axis.size;
  return product;
}

rc::Gen<Trial> arbitrary_trial() {
  return rc::gen::exec([] {
    Trial trial;
    trial.model = *rc::gen::element<std::string>("gpt2", "qwen3-1.7b", "llama-3.1-8b", "vit-b16");
    trial.layers = *rc::gen::inRange(2, 5);
    trial.batch_per_replica = *rc::gen::inRange(1, 5);
    trial.sequence = std::int64_t{128} << *rc::gen::inRange(0, 3);
    trial.microbatches = *rc::gen::element(1, 1, 2);
    trial.step = *rc::gen::element<std::string>("train", "train", "forward");
    trial.rematerialization = *rc::gen::element<std::string>("none", "full", "selective");
    trial.parameters = *rc::gen::element<std::string>("bf16", "fp32");
    trial.gradients = *rc::gen::element<std::string>("bf16", "fp32");
    trial.optimizer = *rc::gen::element<std::string>("adamw", "sgd");
    add_layout(trial);
    trial.machine = arbitrary_machine(trial.replicas() * trial.model_parallel());
    return trial;
  });
}

Json document_of(const Trial& trial) {
  Json workload = {
      {"model", model_file(trial.model, trial.layers)},
      {"step", trial.step},
      {"batch", trial.batch()},
      {"microbatches", trial.microbatches},
      {"precision", {{"parameters", trial.parameters}, {"gradients", trial.gradients}}},
      {"optimizer", trial.optimizer},
      {"rematerialization", trial.rematerialization}};
  if (trial.has_sequence()) workload["sequence"] = trial.sequence;
  Json mesh = Json::object();
  for (const Axis& axis : trial.mesh) mesh[axis.name] = axis.size;
  return {{"name", "trial"},
          {"workload", workload},
          {"mesh", mesh},
          {"strategy", trial.strategy},
          {"machine", trial.machine}};
}

Experiment experiment_of(const Trial& trial) {
  return read_experiments(document_of(trial), "trial.json").front();
}

// At one clock: what power leaves of it depends on everything else that a step does. By formulas
// fitted to measured products alone: of measured shapes the larger may be the quicker.
Prediction predict_by_formulas(const Experiment& experiment) {
  Profile profile = profile_of(experiment);
  profile.device.power.reset();
  if (profile.device.kernels) {
    for (auto& [dtype, products] : profile.device.kernels->products) products.curves.clear();
  }
  return predict_on(profile, experiment, {});
}

Prediction predict_trial(const Trial& trial) { return predict_by_formulas(experiment_of(trial)); }

std::ostream& operator<<(std::ostream& out, const Trial& trial) {
  Json document = document_of(trial);
  document["workload"]["model"] = trial.model;
  return out << document.dump() << " with " << trial.layers << " layers";
}

}  // namespace shardsim::laws
