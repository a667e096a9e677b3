// An experiment: workload, mesh, strategy, machine and options, from one JSON file or from flags,
// and the way from there to a prediction.
//
//   Experiment e = read_experiment(load_json("a.json"), "a.json");
//   Prediction p = predict(e, {});
//
// A file may hold several: "variants" is a list of objects laid over the rest of the file
// (RFC 7396 merge patch: objects merge, null removes), each with a "name".
//
//   { "workload": {"model": "llama-3.1-8b", "step": "train", "batch": 64, "sequence": 8192,
//                  "precision": {"compute": "bf16", "parameters": "bf16", "gradients": "bf16",
//                                "master": "fp32", "moments": "fp32"},
//                  "optimizer": "adamw", "rematerialization": "none"},
//     "machine": "dgx-h100",
//     "variants": [ {"name": "dp", "mesh": {"data": 8}, "strategy": "dp"},
//                   {"name": "fsdp", "mesh": {"fsdp": 8}, "strategy": "fsdp"} ] }
//
// In place of a model a workload may name or hold a parameter tree, {"tree": "tree.json"}, and
// nothing else: its specs can be had, its step cannot. Mesh and strategy may be left out when the
// tree records how its parameters lie.
//
// In place of workload, mesh and strategy an experiment may name a program
// (experiments/program.hpp):
//   { "program": "step.mlir.gz", "machine": "tpu-v5p" }
//
// What may be left out, and what it means then:
//   name                      the file's stem
//   workload.step             "train"; or "forward"
//   workload.sequence         models that need none
//   workload.microbatches     1: no gradient accumulation; "batch" holds all of them. In inference
//                             as many as stages, or fewer that divide the batch.
//                             Or workload.microbatch: the sequences of one of them on a device
//   workload.metrics          []: names of what is averaged over the devices once a step, each as a
//                             sum and a count
//   workload.outputs          []: what leaves the step of every example, beside loss and state:
//                             "logits", "labels", "losses"
//   workload.precision.*      bf16 for compute, parameters and gradients, fp32 for master and for
//                             moments; master "none": the parameters are their own master
//                             (read_precision.hpp)
//   workload.precision.norms  the compute dtype: in which norms apply their weights and their
//                             gradients are summed; JAX programs have fp32
//   workload.precision.look_ups  the compute dtype: of tables in which tokens are looked up, and
//                             of their gradients; JAX programs have that of the parameters
//   workload.precision.indices  "int64", of token numbers and labels; or "int32", as JAX has it
//   workload.optimizer        "adamw"; or "adam", "lion", "adafactor", "sharded_adafactor",
//                             "adam8bit", "adamw8bit",
//                             "sgd", "none"
//   workload.donate           true: the new train state takes the place of the old one, as
//                             donate_argnums has it; false: both are there after the step
//   workload.rematerialization  "none"; or "full", "selective", {"save": ["regular expression"]};
//                             or as frameworks say it (read_rematerialization.hpp)
//   workload.trainable        all parameters; or regular expressions: the others are frozen
//   workload.lora             no adapters; or {"rank": 16, "targets": ["attention"]}, which alone
//                             are trained then (workloads/step/lora.hpp)
//   workload.view             names under which a rule system sees the parameters; as they are, or
//                             the system's default (workloads/views/view.hpp)
//   workload.mtp_layers       0: layers of multi-token prediction, beside the model's
//   workload.dropout          of training, the model's own rates; or one for all
//   devices                   not checked; else the mesh must have that many
//   allow_uneven              false: shards that jit or shard_map refuses are an error
//   collectives               "simulated": whose times collectives have; "all-links",
//                             "tpu-scheduler", "xla-sol" or "flows" (CollectiveModel)
//   machine, topology         needed by `predict` only; the smallest legal topology
//   calibration               the machine's; a shipped one's name, a path that ends in .json,
//                             relative to the file, one in place, or a list of these; []: none
//   slices                    1; of TPUs: a number, or {"data": 2}, axes that go over slices
//   algorithms                what is chosen; {"all-reduce": "Ring/LL128"} (read_algorithms.hpp)
//   placement                 which device stands where in the mesh: as jax places it on a torus,
//                             row-major elsewhere (read_placement.hpp)
// A mesh may also be written as on the command line, "data=2,fsdp=4", or in pairs, [["data", -1]]:
// -1 is what the other axes leave of "devices". Its axes have roles by their
// names (strategies/layout/axis_roles.hpp), others by "roles": {"x": "model"}.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/owned_json.hpp"
#include "hardware_profiles/machine.hpp"
#include "sim/step/simulate.hpp"
#include "strategies/compile/compile.hpp"
#include "strategies/specs/train_state.hpp"
#include "workloads/step/step.hpp"

namespace shardsim {

// How a model's or a tree's tensors lie on devices.
struct Partitioning {
  Mesh mesh;
  AxisRoles roles;
  Strategy strategy;
  // Shards that JAX refuses are priced (strategies/specs/uneven_shards.hpp).
  bool allow_uneven = false;
};

// One of three things: a step of a model, a program that is one, or parameters alone.
struct ModelStep {
  OwnedJson model;  // as load_model_config takes it; paths are relative to the directory
  Step step{};
  Partitioning partitioning{};
};
struct ProgramStep {
  std::string path;            // from here
  bool like_xla = false;       // reshard as XLA does, even where other ways send less
  std::optional<Mesh> mesh{};  // for HLO, which has none: axes to tell groups by
};
struct TreeSubject {
  OwnedJson tree;  // a path, relative to the experiment's directory, or a document
  Partitioning partitioning{};
};
using ExperimentSubject = std::variant<ModelStep, ProgramStep, TreeSubject>;

// Where an experiment says what: errors about it point there.
struct Written {
  Place subject;  // "model", "program" or "tree"
  Place step;     // "workload", of a model
  Place machine;
  Place calibration;
};

// What it means has members of its own; as it was written it is in `resolved`.
struct Experiment {
  std::string name;  // of the variant, else the file's stem
  std::string file;
  std::string directory;  // paths in the experiment are relative to it
  ExperimentSubject subject;

  std::string machine;  // empty: none
  OwnedJson
      machine_in_place;  // changes to a profile, and their numbers' sources; null: it is named
  std::optional<std::string> topology;
  std::optional<std::vector<Calibration>> calibrations;  // nothing: the machine's
  std::int64_t slices = 1;
  DeviceOrder order;
  CollectiveModel collectives = {};
  std::vector<ToldAlgorithm> told;

  Written written;
  OwnedJson resolved;  // with every default filled in; itself a valid experiment
};

// `document` has overrides applied already. Throws InputError. At most 2^31 devices and sequences
// of 2^31 tokens, at most 2^40 tokens per step.
// Of variants those that `wanted` names, where it names any and all of these are there: what is
// wrong with the others does not matter.
[[nodiscard]] std::vector<Experiment> read_experiments(const Json& document,
                                                       const std::string& file,
                                                       const std::vector<std::string>& wanted = {});
// `--set path=value`: path is dotted ("workload.batch"), value JSON or a bare string. Missing
// objects on the way are made, numbers step into lists ("strategy.rules.0.spec"). What is set holds
// for every variant, whatever it says itself.
void apply_override(Json& document, const std::string& path, const std::string& value);

// A field of an experiment as `--set` takes it: "workload.rematerialization", "full".
struct Setting {
  std::string path;
  std::string value;
};

// What an experiment would take with other settings (experiments/suggest.hpp).
struct Suggestion {
  std::vector<Setting> settings;
  SimTime step{0};
  Bytes peak{0};
  bool fits = false;
};

struct Prediction {
  Experiment experiment;
  Machine machine;
  CompiledStep step;
  Result result;
  std::vector<Suggestion> suggestions = {};  // of one that does not fit, where they were asked for
};
// The passes that a model's step goes through, in order: "graph", then those of a strategy
// (strategies/compile/passes.hpp).
struct NamedPass {
  std::string_view name;
  std::string_view makes;
};
[[nodiscard]] std::vector<NamedPass> compile_passes();
// What the step is after the pass of that name. Throws InputError for a program and a tree.
[[nodiscard]] Json compile_until(const Experiment& experiment, std::string_view pass);
// Need no machine; with one, the plan of a program has the memory that its compiler would take. A
// parameter tree has no operations to compile, a program no parameters by name: InputError.
[[nodiscard]] CompiledStep compile_experiment(const Experiment& experiment);
// With `state` the whole train state with that optimizer, of a tree or of a model's parameters as
// they are stored, by what the strategy says of a tree.
[[nodiscard]] SpecTable experiment_specs(const Experiment& experiment,
                                         const std::optional<StateOptimizer>& state = std::nullopt);
[[nodiscard]] Prediction predict(const Experiment& experiment, const SimulationOptions& given);
// The same on a profile that has been read, without the note of the numbers that it assumes: for
// many steps on one machine.
[[nodiscard]] Prediction predict_on(const Profile& profile, const Experiment& experiment,
                                    const SimulationOptions& given);
// `given` with what the experiment says of them.
[[nodiscard]] SimulationOptions simulation_options(const Experiment& experiment,
                                                   const SimulationOptions& given);

}  // namespace shardsim
