// How far predicted step times have been from measured ones: what every report says beside them.
//
// Data of 2026-11-23: 136 published steps of LLMs on A100, H100, B200 and TPU v6e (FSDP, HSDP and
// data parallel; tests/measurements/steps.csv, docs/accuracy.md), run as they are published.
//
//   measured / predicted    10th percentile 1.13, median 1.35, 90th percentile 1.87
//
// Where a strategy says what its stack launches ("kernels"), the error is that of published steps
// whose stack is known (2026-11-26; docs/accuracy.md, tiers A and B, written by
// scripts/accuracy_steps.py), of Megatron, DeepSpeed, FSDP, torchtitan and MaxText.
//
// What matters to a comparison is by how much that ratio differs between two steps that have the
// model, the sequence and the machine in common: of 33 such pairs the 90th percentile of
// max(ratio) / min(ratio) is 1.13. Two predictions that differ by less are a tie. The pairs differ
// in devices, batch and rematerialization; of other strategies nothing comparable is published. How
// far apart the errors of two models, sequences or machines are, or those of compiled programs, is
// not known: a comparison of such says so (verdict.hpp).
#pragma once

#include <string>

namespace shardsim {

struct KnownError {
  int steps = 136;
  double low = 1.13;     // measured over predicted, 10th percentile
  double median = 1.35;  // 50th
  double high = 1.87;    // 90th
  int pairs = 33;
  double between_two = 1.13;  // 90th percentile of the ratio's ratio
};

inline constexpr KnownError known_error;
inline constexpr KnownError known_error_of_stacks = {
    .steps = 671, .low = 0.91, .median = 1.05, .high = 1.26};
inline constexpr const char* known_error_source = "docs/accuracy.md";

// Of two times in one unit: whether the longer is not known to be longer.
[[nodiscard]] bool is_tie(double shorter, double longer);
// "measured steps took 1.35 times the predicted time (1.13 to 1.87 times in 8 of 10; 136 steps,
// docs/accuracy.md)"
[[nodiscard]] std::string known_error_sentence(const KnownError& error);

}  // namespace shardsim
