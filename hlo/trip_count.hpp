// How often a while loop runs.
//
//   1. as the compiler recorded it: backend_config={"known_trip_count":{"n":"4"}}
//   2. else from the loop itself, where it counts: an element i of the state is a constant before
//      the loop, the body adds a constant, the condition compares it with a constant
//
//        i = 0; while (i < 32) i += 2      ceil((32 - 0) / 2) = 16
//
// Copies, conversions and fusions around these are looked through. Everything else is unknown.
#pragma once

#include <cstdint>
#include <optional>

#include "hlo/module.hpp"

namespace shardsim {

[[nodiscard]] std::optional<std::int64_t> trip_count(const HloModule& module, HloId while_loop);

}  // namespace shardsim
