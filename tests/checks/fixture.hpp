// Two recordings of one experiment made by hand, with round figures that the tests derive
// everything else from; `worse` gathers parameters again in the backward pass.
//
//            step    compute  exposed  idle    peak      activations
//   before   1.00 s  0.80 s   0.15 s   0.05 s  10 GiB    4 GiB
//   worse    1.10 s  0.80 s   0.25 s   0.05 s  10.5 GiB  4.5 GiB
//
//            all-gather over fsdp                          reduce-scatter over fsdp
//   before   32 calls of 1 GiB, forward: 24 GiB sent       32 calls, 24 GiB
//   worse    64 calls, 32 of them backward: 48 GiB         32 calls, 24 GiB
// (3/4 of the payload for each of four devices.)
#pragma once

#include "checks/check.hpp"

namespace shardsim::fixture {

[[nodiscard]] Recorded recorded_before();
[[nodiscard]] Measured measured_before();
[[nodiscard]] Measured measured_worse();
[[nodiscard]] CheckedExperiment check_against_before(const Measured& measured,
                                                     const std::string& limits = "{}");

}  // namespace shardsim::fixture
