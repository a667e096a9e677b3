// What one kernel of a trace (kineto_trace.hpp) measures, or why it measures nothing that a table
// can hold. The rules and their sources head trace_tables.hpp.
#pragma once

#include <string>
#include <variant>

#include "measurements/kineto_trace.hpp"
#include "plan/plan.hpp"

namespace shardsim {

struct TracedCase {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Bytes payload{0};
  std::string algorithm;  // NCCL's name; empty: the kernel's name does not tell it

  [[nodiscard]] auto operator<=>(const TracedCase&) const = default;
};

// "16 coalesced" is how a reason is counted: "coalesced".
using PassedOver = std::string;

[[nodiscard]] std::variant<TracedCase, PassedOver> judge(const TracedCollective& collective);

}  // namespace shardsim
