// Records of real PyTorch (tests/golden/torch/README.md) and our plans in one form: the calls of a
// rank in the order of their issue, as lines that can be compared.
//
//   all-gather dp_shard 436224000 bf16      the whole array, on this rank's side of the call
//   send 33554432                           of messages without the peer, which a record has only
//                                           of the first of all that are else alike
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "plan/plan.hpp"

namespace shardsim::test {

using Calls = std::vector<std::string>;

[[nodiscard]] Calls recorded_calls(const Json& record, bool with_clipping = true);
[[nodiscard]] Calls planned_calls(const Plan& plan, const Program& program);

// Are both the same? Prints the first difference, if there is one.
[[nodiscard]] bool same_calls(const Calls& ours, const Calls& theirs, const std::string& id);

// What the program keeps between steps, of a category.
[[nodiscard]] std::int64_t held_bytes(const Program& program, BufferCategory category);

}  // namespace shardsim::test
