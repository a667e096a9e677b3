// Steps one after another as one plan: a prompt, then decoding token by token.
#pragma once

#include <cstdint>

#include "plan/plan.hpp"

namespace shardsim {

// `first`, then `further` so many times, each when the one before is through: of one program, when
// its last task is; of several, the stages of a pipeline, when the last one has sent the first what
// it ends a microbatch with, the next tokens. Both are of the same mesh and have the same programs,
// devices and streams, those of several "activation sends" and "activation receives". What
// `further` has in memory before its step is what `first` leaves: its buffers that live beyond the
// step are not there twice.
[[nodiscard]] Plan followed_by(Plan first, const Plan& further, std::int64_t times);

}  // namespace shardsim
