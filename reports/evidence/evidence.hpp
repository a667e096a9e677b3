// What was measured near a predicted step, and how far predictions of such steps have been off.
//
//   StepEvidence e = evidence_for({.stack = "transformer-engine", .device = "H100 SXM5 80 GB"});
//   e.low, e.median, e.high    measured over predicted: 1.02, 0.93 to 1.15 in 8 of 10
//   e.of                       "the nearest 30 of 121 published dense steps of transformer-engine
//                              on H100 SXM5 80 GB"
//   e.nearest                  three of them, with what was measured and predicted
//   e.outside                  "sequence 131,072; at most 32,768 was measured"
//
// The steps are steps.tsv, written by scripts/accuracy_steps.py with the sources: those whose stack
// is stated, with what this version predicts of each. Near is what has the same stack, device, kind
// of step and of model; where those are fewer than `fewest`, what has all but the stack; then all
// but the device; then the kind of step alone. Among these a distance counts factors between
// parameters, devices, tokens of a device and the sequence: the logarithms, squared and added up.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardsim {

struct Situation {
  std::string stack;   // whose kernels: "transformer-engine"
  std::string device;  // "H100 SXM5 80 GB"
  std::string step;    // "train", "prefill", "decode", "generate", "forward"
  bool has_experts = false;
  double parameters = 1;
  double devices = 1;
  double tokens = 1;  // of a device in one step
  double sequence = 1;
};

struct PublishedStep {
  std::string id;  // "dgxc_llama31_h100/6": source and number
  Situation situation;
  double measured = 0;   // in seconds
  double predicted = 0;  // in seconds
  [[nodiscard]] double ratio() const { return measured / predicted; }
};

struct StepEvidence {
  int steps = 0;
  double low = 1;  // measured over predicted, 10th percentile
  double median = 1;
  double high = 1;  // 90th
  // 90th percentile of max(ratio) / min(ratio) of every two of them that come from one source and
  // have model, sequence and device in common; `pairs` of these, 0: nothing is known.
  int pairs = 0;
  double between_two = 1;
  std::string of;
  std::vector<PublishedStep> nearest;
  std::vector<std::string> outside;
};

// The steps that ship.
[[nodiscard]] const std::vector<PublishedStep>& published_steps();
// Lines of `steps.tsv`. Throws InputError.
[[nodiscard]] std::vector<PublishedStep> read_published_steps(std::string_view text);

// Of `steps`, which are not empty.
[[nodiscard]] StepEvidence evidence_for(
    const Situation& situation, const std::vector<PublishedStep>& steps = published_steps());

// "measured steps took 1.02 times the predicted time (0.93 to 1.15 times in 8 of 10; the nearest 30
// of 121 published dense steps of transformer-engine on H100 SXM5 80 GB)"
[[nodiscard]] std::string evidence_sentence(const StepEvidence& evidence);

}  // namespace shardsim
