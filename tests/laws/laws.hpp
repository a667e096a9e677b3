// What every answer should obey, as functions of a random experiment (trial.hpp).
//
// A law answers what broke it, or nothing. Laws of time are stated twice, as kernels and
// collectives that run at the same time share a machine (docs/laws.md):
//   - exactly, of the step without sharing, where each task takes what it takes alone: beginnings
//     and ends are then maxima and sums of earlier ones, so a step is monotone in each task's time;
//   - of the step as it is: it may become longer by at most what sharing adds to it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trial.hpp"

namespace shardsim::laws {

struct Violation {
  double by = 0;     // relative: 0.01 is a hundredth off
  std::string what;  // in a sentence
};

struct Law {
  std::string name;
  // Throws nothing for an experiment that the law does not speak of: it holds.
  std::function<std::optional<Violation>(const Trial&)> broken_by;
};

// Of models and layouts: batch, sequence, layers, replicas; names and sizes of axes; sums.
[[nodiscard]] std::vector<Law> layout_laws();
// Of machines: bandwidth, latency, rates.
[[nodiscard]] std::vector<Law> machine_laws();
// No laws, but counted: how often sharing or another choice of algorithms makes the step of a
// faster machine longer, and how often such a choice does alone.
[[nodiscard]] std::vector<Law> anomalies();
[[nodiscard]] std::vector<Law> choices();

// A prediction, and what its step takes where nothing is shared.
struct Timed {
  Prediction prediction;
  SimTime alone{0};
  SimTime compute_kernels{0};           // of the compute stream, alone
  SimTime other_kernels{0};             // of other streams
  std::vector<std::string> algorithms;  // of every collective of the plan

  [[nodiscard]] SimTime step() const { return prediction.result.step_time; }
  [[nodiscard]] Bytes peak() const { return prediction.result.peak(); }
};
[[nodiscard]] Timed timed(Prediction prediction);

// Nothing where `longer` is.
[[nodiscard]] std::optional<Violation> not_shorter(const char* what, SimTime shorter,
                                                   SimTime longer);
// The two laws of time: alone, and as it is.
[[nodiscard]] std::optional<Violation> not_faster(const Timed& quick, const Timed& slow);

}  // namespace shardsim::laws
