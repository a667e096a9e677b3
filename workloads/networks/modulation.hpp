// Adaptive layer norm (adaLN, arXiv:2212.09748): a condition, the time and what is to be painted,
// says by how much each channel is scaled and shifted after a norm without parameters, and how much
// of a branch is added.
//
//   all = linear(silu(condition))            [b, parts * h]: shift, scale, gate of each branch
//   x * (1 + scale) + shift                  keeps 1 + scale and x
//   gate * out                               keeps both; the gates are views of `all`
#pragma once

#include <string_view>

#include "workloads/eager/eager.hpp"

namespace shardsim::models {

// Within a module that holds "linear".
Value modulation(Eager& e, const Value& condition, std::int64_t parts, std::int64_t hidden);
Value modulate(Eager& e, const Value& normed, const Value& all);
Value gated_branch(Eager& e, const Value& out, const Value& all);
// A layer norm without parameters, of the module `name`.
Value fixed_norm(Eager& e, std::string_view name, const Value& x);

}  // namespace shardsim::models
