// By which model collectives are priced.
#pragma once

#include <cstdint>
#include <string_view>

namespace shardsim {

// Whose time a collective takes.
//   simulated      ours: on slices of TPUs of what XLA's compiler chooses, else of what is written
//                  beside the machine's formulas
//   uncalibrated   the same, not corrected by what machines alike have taken (calibrated_cost.hpp)
//   all_links      ours, and a torus uses all links that could help whatever the compiler chooses
//   tpu_scheduler  what the TPU compiler's scheduler reckons with (tpu/compiler_choice.hpp)
//   xla_sol        what XLA's GPU scheduler reckons with, at the speed of light (xla_sol.hpp)
//   flows          ours, of every message over the links that it crosses (network_cost.hpp): rings
//                  of the library, and along all dimensions of a slice
enum class CollectiveModel : std::uint8_t {
  simulated,
  uncalibrated,
  all_links,
  tpu_scheduler,
  xla_sol,
  flows
};
inline constexpr int collective_models = 6;
[[nodiscard]] std::string_view name_of(CollectiveModel model);  // "tpu-scheduler"

}  // namespace shardsim
