// What the threads of one process tell each other: a rank each, as for a process that drives all
// GPUs of its node.
#pragma once

#include <functional>

#include "validate/exchange/exchange.hpp"

namespace shardsim {

// Calls `work` for every rank, each in a thread of its own, with its exchange, and returns when all
// have ended. What one throws is thrown here, of the lowest rank; the others find out when they
// exchange or check.
void run_in_threads(std::int64_t ranks, const std::function<void(Exchange&)>& work);

}  // namespace shardsim
