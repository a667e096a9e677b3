// How the TPU compiler cuts the operand of a reduce-scatter to fit its vector memory (VMEM).
//
// The operand goes through VMEM in spans. A span of s bytes takes s (1 + 4/r), r = length of the
// rings: of 14.25 MiB, on v6e 29.25 MiB. A member's part of a span is a multiple of 32 KiB. Where
// the spans do not come out even the compiler pads the operand and fuses padding and reduction.
// When it does not is less clear: one span always, two that fill three quarters of what fits.
//
// Read off the spans that libtpu 0.0.51 prints of 836 reduce-scatters. How the compiler settles
// on a number of spans was not found: the padded size here is the least of the fewest spans that
// fit, within 1.5 % of the compiler's in most cases, 10 % in the worst (64 members and more).
//
// Example: 64 MiB over 16 on v5e: 14.25 MiB / 1.25 = 11.4 MiB at most, so 6 spans; a sixth of
// 4 MiB is 683 KiB, rounded up 704 KiB. 6 * 16 * 704 KiB = 66 MiB, 3 % more; so does the compiler.
#pragma once

#include <cstdint>

#include "base/units.hpp"
#include "sim/tpu/slice.hpp"

namespace shardsim::tpu {

struct Spans {
  bool even = true;  // nothing is padded
  Bytes padded{0};
};

[[nodiscard]] Spans cut_into_spans(Generation generation, Bytes operand, std::int64_t members,
                                   std::int64_t ring);

}  // namespace shardsim::tpu
