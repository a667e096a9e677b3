// Predictions to be traced, of two kinds: pipelines made here for a machine of one byte and one
// flop per picosecond (tests/sim/plan_builder.hpp), whose times are worked out beside them, and
// shipped examples, whose sums must be those of the result.
#pragma once

#include <vector>

#include "reports/format/report.hpp"

namespace shardsim::traced {

[[nodiscard]] std::vector<const Prediction*> examples();
// Of these the one with collectives over two axes.
[[nodiscard]] const Prediction& fsdp_and_tp();

// Two stages of two devices: the first computes, gathers and sends, the second computes meanwhile,
// receives, computes and sends back what the first needs for its last kernel. In picoseconds:
//
//   first   compute  kernel 0-100                                kernel 170-180
//           link              gather 100-120  send 120-150  receive 160-170
//   second  compute  kernel 0-30                      kernel 150-160
//           link                              receive 120-150  send 160-170
[[nodiscard]] Plan two_stages();

// Two programs of two devices: kernels, gathers on two streams, messages whose ends are issued at
// once, so that no deadlock is possible; some take no time.
[[nodiscard]] Plan random_plan(unsigned seed);

[[nodiscard]] Prediction simulated(Plan plan);

}  // namespace shardsim::traced
