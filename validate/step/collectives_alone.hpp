// A step's communication without its kernels: collectives and messages between programs, each on
// its stream, waiting for those that it waited for through kernels, copies to the host and the
// order of streams. There are no buffers.
//
// Example: an all-gather for layer 2 that starts when layer 1's kernels begin, which wait for layer
// 1's all-gather: it waits for that.
#pragma once

#include "plan/plan.hpp"

namespace shardsim {

// The plan has passed verify(), and so does the result. Throws InputError for a step that does not
// communicate.
[[nodiscard]] Plan collectives_alone(const Plan& plan);

}  // namespace shardsim
