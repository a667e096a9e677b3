// From a plan on a machine to the engine's task graph: every task gets a number, a price and the
// tasks that it waits for; messages find their partners.
//
// The k-th send of program A to B on a channel, in issue order, meets the k-th receive there of B
// from A. Of a collective whose groups join programs, the k-th task in each of them is one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/collectives/collective_cost.hpp"
#include "sim/step/engine.hpp"
#include "sim/step/resources.hpp"

namespace shardsim {

struct Lowered {
  TaskGraph graph;
  std::vector<std::int32_t> first_task;    // of each program, and one past the last
  std::vector<CostBreakdown> collectives;  // by index into Plan::collectives
  LinkUses link_uses;
  std::vector<std::string> notes;  // of how collectives are simulated and what shares how
};

// Throws InputError for what the simulator cannot run (collectives with members that no program
// has, messages between programs of which neither has a multiple of the other's devices, host
// copies where the machine does not know the link, more than 20 hours), std::logic_error for sends
// and receives, and for collectives of several programs, that do not match.
[[nodiscard]] Lowered lower(const Plan& plan, const Placement& placement,
                            const CostOptions& options,
                            FollowLinks follow = FollowLinks::where_messages_meet);

}  // namespace shardsim
