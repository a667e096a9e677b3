// The two verdicts of a report, in a sentence with its figures: does it fit, and which is best.
#pragma once

#include <string>
#include <vector>

#include "reports/format/figures.hpp"
#include "reports/format/report.hpp"

namespace shardsim {

// "fits: 61.2 GiB of 79.9 GiB", or
// "fits narrowly: 78.9 GiB of 79.1 GiB; 3.4 to 11.5 GiB more are not counted: the CUDA context,
// ...", or
// "does not fit: needs 149.5 GiB, 69.6 GiB more than the 79.9 GiB of one H100 SXM5 80 GB:
//  89.8 GiB optimizer, 15.0 GiB parameters" (the categories at the peak, largest first).
[[nodiscard]] std::string memory_verdict(const Figures& figures);

// "stages 3, 7 bind, idle 122.08 ms; the longest wait, 326.81 ms, is that of stages 2, 6"; empty
// but for pipelines, and where no stage is idle longer than another by a hundredth of the step.
[[nodiscard]] std::string binding_stage(const Figures& figures);

// Of those that fit the shortest step; among equals the smaller peak, then the first listed. Where
// steps do different work, the shortest time for a token (an image), which is said; where some have
// tokens and some have none, the shortest step nevertheless. Where others are within the known
// error of the best, that is a tie, and said; where they differ in what that error is known for,
// that is said, too.
[[nodiscard]] Choice choose(const std::vector<Figures>& all);

}  // namespace shardsim
