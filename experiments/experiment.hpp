// An experiment: workload, mesh, strategy, machine and options, from one JSON file or from flags,
// and the way from there to a prediction.
//
//   Experiment e = read_experiment(load_json("a.json"), "a.json");
//   Prediction p = predict(e, {});
//
// A file may hold several: "variants" is a list of objects laid over the rest of the file
// (RFC 7396 merge patch), each with a "name".
//
//   { "workload": {"model": "llama-3.1-8b", "step": "train", "batch": 64, "sequence": 8192,
//                  "precision": {"compute": "bf16", "parameters": "bf16", "gradients": "bf16",
//                                "master": "fp32", "moments": "fp32"},
//                  "optimizer": "adamw", "rematerialization": "none"},
//     "machine": "dgx-h100",
//     "variants": [ {"name": "dp", "mesh": {"data": 8}, "strategy": "dp"},
//                   {"name": "fsdp", "mesh": {"fsdp": 8}, "strategy": "fsdp"} ] }
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hardware_profiles/machine.hpp"
#include "sim/simulate.hpp"
#include "strategies/compile.hpp"
#include "workloads/build.hpp"

namespace shardsim {

struct Experiment {
  std::string name;  // of the variant, else the file's stem
  std::string file;
  std::string directory;  // paths in the experiment are relative to it
  std::string model;
  std::string step = "train";
  WorkloadOptions workload;
  Rematerialization rematerialization;
  OptimizerOptions optimizer;
  Mesh mesh;
  StrategyOptions strategy;
  std::string machine;
  std::optional<std::string> topology;
  Json resolved;  // the experiment with every default filled in; itself a valid experiment
};

// `document` has overrides applied already. Throws InputError.
[[nodiscard]] std::vector<Experiment> read_experiments(const Json& document, const std::string& file);
// `--set path=value`: path is dotted ("workload.batch"), value JSON or a bare string. Missing
// objects on the way are made.
void apply_override(Json& document, const std::string& path, const std::string& value);

struct Prediction {
  Experiment experiment;
  Machine machine;
  CompiledStep step;
  Result result;
};
[[nodiscard]] CompiledStep compile_experiment(const Experiment& experiment);  // no machine needed
[[nodiscard]] Prediction predict(const Experiment& experiment, const SimulationOptions& options);

}  // namespace shardsim
