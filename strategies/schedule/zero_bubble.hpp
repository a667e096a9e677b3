// 1F1B with every backward split (arXiv:2401.10241): I as early as the pipeline needs it, W later,
// where the rank would idle.
//
// Order of a rank: warmup forwards, then F I for the first `late` microbatches and F I W from there
// on, I W while no forward is left, and the W that are still owed. W come in the order of the I.
//
//                    warmup per hop   late for rank r   held
//   zero-bubble            1                r           ranks, on every rank: as rank 0 in 1F1B
//   zero-bubble-2p         2               2r           2 ranks - 1
//
//   3 ranks, 5 microbatches, zero-bubble-2p, F, I and W one step each: nobody idles between his
//   first action and his last, rank r works from step r to r + 15
//   rank 0: 0F0 0F1 0F2 0F3 0F4 0I0 0W0 0I1 0W1 0I2 0W2 0I3 0W3 0I4 0W4
//   rank 1:     1F0 1F1 1F2 1I0 1F3 1I1 1F4 1I2 1W0 1I3 1W1 1I4 1W2 1W3 1W4
//   rank 2:         2F0 2I0 2F1 2I1 2F2 2I2 2F3 2I3 2F4 2I4 2W0 2W1 2W2 2W3 2W4
//
// zero-bubble is the paper's ZB-H1, zero-bubble-2p its ZB-H2, both of section 2; the second has no
// record of any framework here and is held to the paper's properties: no bubble with 2 ranks - 1
// microbatches or more, memory as above. Its optimizer runs without waiting for the other ranks.
// interleaved-zero-bubble is PyTorch's ScheduleInterleavedZeroBubble: the order of zero-bubble over
// turns.hpp, groups and refusal as PyTorch's interleaved-1f1b; with one stage per rank it is
// zero-bubble, for any number of microbatches.
#pragma once

#include "base/error.hpp"
#include "strategies/schedule/schedule.hpp"

namespace shardsim {

struct ScheduleRequest;

[[nodiscard]] PipelineSchedule zero_bubble_h1(const ScheduleRequest& request, const Place& place);
[[nodiscard]] PipelineSchedule zero_bubble_h2(const ScheduleRequest& request, const Place& place);
[[nodiscard]] PipelineSchedule interleaved_zero_bubble(const ScheduleRequest& request,
                                                       const Place& place);

}  // namespace shardsim
