// What an optimizer keeps beside the parameters, named as optax names it: a transformation alone or
// a chain of them, of which each has its number.
//
//   adamw                                    0/count, 0/mu, 0/nu
//   adamw(schedule)                          these and 2/count, the count of the schedule
//   chain(clip_by_global_norm, adamw)        1/0/count, 1/0/mu, 1/0/nu
//   chain(clip(1), scale_by_adam, scale(-1)) 1/count, 1/mu, 1/nu
//   sgd                                      nothing
//
// Arguments change nothing, but for these: `schedule` is a learning rate that goes by the step,
// which is counted; `momentum` of sgd; `mu_dtype=bfloat16` is that of the first moment.
//
// Source: google-deepmind/optax 0.2.8, run with jax.tree_util.tree_flatten_with_path.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/dtype.hpp"
#include "base/error.hpp"

namespace shardsim {

// One part of the state: a tensor like each parameter, or one count.
struct StateSlot {
  std::string path;  // "1/0/mu"
  bool is_moment = true;
  std::optional<DType> dtype{};  // of moments, where the optimizer is told one
};
using StateOptimizer = std::vector<StateSlot>;

// Throws InputError: a name that is none of those known, a parenthesis too many or too few.
[[nodiscard]] StateOptimizer parse_state_optimizer(const std::string& text, const Place& place);

}  // namespace shardsim
