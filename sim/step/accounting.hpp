// Where the time of a step goes.
//
// At any moment a program computes (a kernel runs), or is exposed (no kernel runs; a collective, a
// message or a copy to or from the host is in flight), or is idle: step = compute + exposed + idle,
// exactly; each by cause (time_parts.hpp). Exposed time is shared evenly, to the picosecond, among
// what is then in flight; the remainder of the division goes to what started first. So the exposed
// time of the rows adds up to that of the programs.
//
// Rows are sums over device classes. A message counts at both ends (time, exposed) but is sent once
// (count, payload, wire bytes); messages are rows of kind collective-permute without axes, copies
// to and from hosts rows of a kind of their own, which put nothing on wires between devices.
#pragma once

#include <string>
#include <vector>

#include "sim/step/lowering.hpp"
#include "sim/step/simulate.hpp"

namespace shardsim {

// Fills the times of result.programs, result.communication, result.step_time and the balances of
// compute and links. result.programs has one entry per program, with tasks.
void account(const Plan& plan, const Lowered& lowered, const Trace& trace, Result& result);

// Mean over maximum of a quantity across devices, `devices[i]` of them having `values[i]`; 1 when
// all are zero.
[[nodiscard]] double balance(const std::vector<double>& values,
                             const std::vector<std::int64_t>& devices);

}  // namespace shardsim
