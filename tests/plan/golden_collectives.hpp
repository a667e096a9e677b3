// Collectives of a plan against those of a golden record (tests/golden/xla/expected): two
// multisets, without order, permutes that move nothing left out. A count of null, a loop of unknown
// length, counts once.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/json_reader.hpp"
#include "plan/plan.hpp"

namespace shardsim::test {

// "all-gather x, bf16 1048576" -> how often
using CollectiveCounts = std::map<std::string, std::int64_t>;

[[nodiscard]] CollectiveCounts expected_collectives(const JsonReader& rows);
[[nodiscard]] CollectiveCounts actual_collectives(const Plan& plan);
[[nodiscard]] double expected_wire_bytes(const JsonReader& rows);
[[nodiscard]] double actual_wire_bytes(const Plan& plan);
// Lines "what: expected n, actual m"; empty when equal.
[[nodiscard]] std::string difference(const CollectiveCounts& expected,
                                     const CollectiveCounts& actual);
// For each kind and axes, the sum of payload times count.
[[nodiscard]] CollectiveCounts bytes_by_axes(const JsonReader& rows);
[[nodiscard]] CollectiveCounts bytes_by_axes(const Plan& plan);
[[nodiscard]] Mesh golden_mesh(const JsonReader& pairs);
// The plan with its groups told as axes of another mesh over the same devices.
[[nodiscard]] Plan told_by(Plan plan, const Mesh& mesh);

}  // namespace shardsim::test
