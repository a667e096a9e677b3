// What an argument of a compiled step holds, as far as its name tells: jax names the leaves of a
// program's arguments and results by the way to them.
//
//   use_of_argument("result[0]['mu']['h.3.attn.weight']", true)
//     == {"result[0]['mu']['h.{}.attn.weight']", 3, BufferCategory::optimizer}
//
// An argument whose place a result takes is state that the step hands on: parameters, or of the
// optimizer where a part of the way is one of optax' or a usual name for its state (mu, nu, count,
// trace, momentum, opt_state and the like). Others are inputs, unless a part says "params".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "plan/plan.hpp"

namespace shardsim {

struct ArgumentUse {
  std::string name;         // with "{}" for the number of a layer: the first between two dots
  std::int32_t layer = -1;  // that number
  BufferCategory category = BufferCategory::inputs;
};

[[nodiscard]] ArgumentUse use_of_argument(std::string_view way, bool is_handed_on);

}  // namespace shardsim
