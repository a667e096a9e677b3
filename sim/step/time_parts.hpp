// The parts that the time of a step is made of, on a device: they add up to it exactly.
//
//   compute        forward, recompute, backward, optimizer: of the time with a kernel running, what
//                  it takes alone
//   contention     what it takes longer, with others beside it
//   exposed        no kernel runs, communication is in flight: by the parallelism that it is of
//                  (Parallelism in plan.hpp); messages between programs are the pipeline's; copies
//                  to hosts and back; shared evenly where several are in flight
//   idle           nothing runs. `host`: a kernel of the host, or the next task is not issued yet;
//                  `bubble`: it is, and other stages are waited for, or have not ended
//
// Example: a kernel of the forward pass from 0 to 10 us, a message that is ready at 10 and whose
// receiver is at 14, taking 3 us, a kernel of the backward pass from 17 to 30 us:
//   forward 10, bubble 4, pipeline 3, backward 13, together 30 us
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/units.hpp"
#include "plan/plan.hpp"

namespace shardsim {

enum class TimePart : std::uint8_t {
  forward,
  recompute,
  backward,
  optimizer,
  contention,
  tensor,
  data,
  context,
  expert,
  pipeline,
  scalars,
  communication,  // of which it is not known, as in programs of others
  host_copies,
  host,
  bubble
};
inline constexpr std::size_t time_parts = 15;

struct TimePartRow {
  TimePart part;
  std::string_view of;    // which part of the three and contention: "compute", "exposed", "idle"
  std::string_view name;  // "forward", "data", "bubble"; empty: all of it
};
// All of them, in the order in which reports list them.
[[nodiscard]] const std::array<TimePartRow, time_parts>& time_part_rows();

using TimeByPart = std::array<SimTime, time_parts>;

[[nodiscard]] TimePart part_of_kernel(const Task& task);
[[nodiscard]] TimePart part_of_communication(const Plan& plan, const Task& task);

}  // namespace shardsim
