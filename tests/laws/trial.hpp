// A random experiment, small enough that hundreds take seconds: a shipped model of a few layers, a
// mesh, a strategy that it can serve, precision, rematerialization, a machine.
//
//   const Trial trial = *arbitrary_trial();
//   const Prediction prediction = predict_trial(trial);
//
// Trials are values: a law changes one (doubles the batch, renames an axis) and compares.
#pragma once

#include <rapidcheck.h>

#include <iosfwd>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "experiments/experiment.hpp"

namespace shardsim::laws {

struct Axis {
  std::string name;
  std::int64_t size = 1;
};

struct Trial {
  std::string model = "gpt2";  // shipped
  std::int64_t layers = 2;
  std::int64_t batch_per_replica = 1;  // and microbatch
  std::int64_t sequence = 128;         // of models that have one
  std::int64_t microbatches = 1;
  std::string step = "train";  // or "forward", which has no use for the four that follow
  std::string rematerialization = "none";
  std::string parameters = "bf16";  // dtypes
  std::string gradients = "bf16";
  std::string optimizer = "adamw";
  std::vector<Axis> mesh;
  Json strategy;
  std::string machine = "dgx-h100";

  [[nodiscard]] bool has_sequence() const;
  // Of those that split the model, the product of sizes; and of the others.
  [[nodiscard]] std::int64_t model_parallel() const;
  [[nodiscard]] std::int64_t replicas() const;
  [[nodiscard]] std::int64_t batch() const { return batch_per_replica * replicas() * microbatches; }
};

// Whether there is one of that size.
[[nodiscard]] bool can_have(const std::string& machine, std::int64_t devices);

// With a mesh that the machine can have. Layers are two or more: a single one is a part of the root
// unit, not a unit of its own.
[[nodiscard]] rc::Gen<Trial> arbitrary_trial();

// The experiment file, its model a file in a folder of this process.
[[nodiscard]] Json document_of(const Trial& trial);
[[nodiscard]] Experiment experiment_of(const Trial& trial);
[[nodiscard]] Prediction predict_by_formulas(const Experiment& experiment);
[[nodiscard]] Prediction predict_trial(const Trial& trial);

// The document, with the shipped model's name and its layers.
std::ostream& operator<<(std::ostream& out, const Trial& trial);

}  // namespace shardsim::laws
