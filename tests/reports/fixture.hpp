// Two predictions made by hand, with round figures that the tests derive everything else from:
// "toy" on two devices of 10 GiB each.
//
//          step    compute  communication  exposed  idle   peak
//   dp     1.0 s   0.8 s    0.5 s          0.15 s   0.05   12 GiB of 10: does not fit
//   fsdp   1.25 s  0.8 s    0.75 s         0.4 s    0.05    7 GiB of 10
//
// fsdp runs five tasks, with memory and timeline kept:
//   compute        forward layer 0  0.0 - 0.2     forward layer 1  0.2 - 0.4
//                  backward layer 0 0.8 - 1.2
//   communication  all-gather       0.4 - 0.8     reduce-scatter   0.9 - 1.25
#pragma once

#include "reports/format/report.hpp"

namespace shardsim::fixture {

// One that replicates, one that shards.
[[nodiscard]] Prediction dp();
[[nodiscard]] Prediction fsdp();

inline constexpr std::int64_t picoseconds_per_ms = 1'000'000'000;
[[nodiscard]] constexpr SimTime ms(std::int64_t count) {
  return SimTime(count * picoseconds_per_ms);
}
[[nodiscard]] constexpr Bytes gib(std::int64_t count) { return Bytes(count * GiB); }

}  // namespace shardsim::fixture
