// Pairwise exchange: in step k rank r sends its part for rank r + k straight there, N - 1 steps of
// P / N, P being what one rank sends to all (Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005).
#pragma once

#include "sim/network/phases.hpp"

namespace shardsim::network {

// `payload`: one rank's array.
[[nodiscard]] Phases pairwise_all_to_all(std::int64_t ranks, Bytes payload);

}  // namespace shardsim::network
