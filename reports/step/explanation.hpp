// Why the collectives of a step are there, what would spare them, and what they cost: the figures
// of `plan --explain`.
//
//   Explanation e = explain(plan, &result);
//   e.collectives[0]    all-gather over fsdp (8 devices), 416.0 MiB, 32 times, 11.4 GiB sent,
//                       "model.layers.{}: stored over fsdp (...), read whole in the forward pass"
//
// A row stands for collectives that are alike: same kind, devices, element type and payload, and
// reasons and remedies that differ in numbers only (the lines of unrolled layers). Its reason is
// that of the first.
// Rows are in order of their price, the highest first: the time where a machine is known, else the
// wire bytes of one device (plan.hpp); among equals the order of the plan.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "sim/step/simulate.hpp"

namespace shardsim {

struct ExplainedCollective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::string over;  // "fsdp", "data,fsdp", "groups", "pairs"
  std::int64_t group_size = 1;
  DType dtype = DType::bf16;
  Bytes payload{0};                // of one execution
  Bytes wire_bytes{0};             // sent by one device in one execution
  std::int64_t places = 0;         // entries of plan.collectives
  std::int64_t count = 0;          // executions per step
  std::optional<SimTime> time;     // sum over executions
  std::vector<std::string> where;  // "model.layers.{}, forward, 32 layers"
  std::int64_t reasons = 0;        // distinct ones
  std::string reason;              // of the first; empty: not known
  std::string remedy;              // empty: none is known

  [[nodiscard]] Bytes total_wire_bytes() const { return count * wire_bytes; }
};

struct Explanation {
  std::string title;      // "llama-3.1-8b, fsdp on fsdp=8"
  bool compiled = false;  // HLO text, which does not say why
  std::vector<ExplainedCollective> collectives;
  std::size_t programs = 1;     // device classes; counts, bytes and times are of all together
  std::int64_t count = 0;       // executions of all rows
  Bytes wire_bytes{0};          // of all rows
  std::optional<SimTime> time;  // of all rows; they may overlap each other and kernels
  std::optional<SimTime> step;

  // Of all wire bytes; of the step, which a row can exceed only by running beside others.
  [[nodiscard]] double share_of_bytes(const ExplainedCollective& row) const;
  [[nodiscard]] double share_of_step(SimTime part) const;
};

// `result`: of the same plan, or null where no machine is given.
[[nodiscard]] Explanation explain(const Plan& plan, const Result* result);

}  // namespace shardsim
