// The TPU compiler's choice for a collective of a plan, where its axes lie.
#pragma once

#include <optional>

#include "sim/collectives/placement.hpp"
#include "sim/tpu/compiler_choice.hpp"

namespace shardsim {

// Of all groups, which lie alike. Nothing on other machines than slices of known generations, for
// groups of one, and where the compiler refuses. Throws InputError as lanes_of does.
//
// What plans do not say is taken as: gathered and scattered dimensions are major ones.
[[nodiscard]] std::optional<tpu::Choice> tpu_choice(const Placement& placement,
                                                    const Collective& collective);

}  // namespace shardsim
