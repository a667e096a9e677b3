// How far predicted step times have been from measured ones: what every report says beside them.
//
// Data of 2026-11-23: 136 published steps of LLMs on A100, H100, B200 and TPU v6e (FSDP, HSDP and
// data parallel; tests/measurements/steps.csv, docs/accuracy.md), run as they are published.
//
//   measured / predicted    10th percentile 1.13, median 1.31, 90th percentile 1.82
//
// Where a strategy says what its stack launches ("kernels"), the error is that of published steps
// near the predicted one (reports/evidence/evidence.hpp).
//
// What matters to a comparison is by how much that ratio differs between two steps that have the
// model, the sequence and the machine in common: of 33 such pairs the 90th percentile of
// max(ratio) / min(ratio) is 1.15. Two predictions that differ by less are a tie. The pairs differ
// in devices, batch and rematerialization; of other strategies nothing comparable is published. How
// far apart the errors of two models, sequences or machines are, or those of compiled programs, is
// not known: a comparison of such says so (verdict.hpp).
#pragma once

#include "reports/evidence/evidence.hpp"

namespace shardsim {

[[nodiscard]] StepEvidence known_error();

// Of two times in one unit, of steps whose errors differ by so much: whether the longer is not
// known to be longer.
[[nodiscard]] bool is_tie(double shorter, double longer, double between_two);

}  // namespace shardsim
