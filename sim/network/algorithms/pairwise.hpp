// All-to-alls in which every rank sends its part for another straight there.
//
// Pairwise exchange: in step k rank r sends its part for rank r + k straight there, N - 1 steps of
// P / N, P being what one rank sends to all (Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005).
//
//   time = (N - 1) (latency + P / N / bandwidth)
//
// Direct: all N - 1 messages at once, as NCCL sends those of one group of calls. What a link
// carries decides: (N - 1) P / N / bandwidth behind a switch, P / N / bandwidth over links of their
// own.
#pragma once

#include "sim/network/phases.hpp"
#include "sim/network/way.hpp"

namespace shardsim::network {

// The payload is one rank's array.
[[nodiscard]] Lanes pairwise_all_to_all(std::int64_t ranks);

[[nodiscard]] Lanes direct_all_to_all(std::int64_t ranks);

// Of a pairwise exchange where every way is as long.
[[nodiscard]] FlowTime pairwise_time(std::int64_t ranks, Bytes payload, const Way& way);

}  // namespace shardsim::network
