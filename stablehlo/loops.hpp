// How often the body of a stablehlo.while runs, where that can be read off the program.
//
// Recognized is what jax.lax.scan, map and fori_loop print: the condition compares one loop
// variable with a constant, the body adds a constant to it, and it begins as a constant.
//
//   %1:4 = stablehlo.while(..., %iterArg_1 = %c, ...)      %c = 0
//    cond { %c_3 = 4   compare LT, %iterArg_1, %c_3 }
//    do { %c_5 = 1   ... add %iterArg_1, %c_5 ... }
//   trip_count == 4
#pragma once

#include <cstdint>
#include <optional>

#include "stablehlo/module.hpp"

namespace shardsim::stablehlo {

// Nothing where the condition depends on data.
[[nodiscard]] std::optional<std::int64_t> trip_count(const Function& function, const Op& loop);

}  // namespace shardsim::stablehlo
