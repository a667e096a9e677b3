// From a plan on a machine to the engine's task graph: every task gets a number, a price and the
// tasks that it waits for; messages find their partners.
//
// The k-th send of program A to B, in issue order, meets the k-th receive of B from A.
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

// Throws InputError for what the simulator cannot run (collectives that leave the devices of their
// program, messages between programs of different size, host copies where the machine does not know
// the link, more than 20 hours), std::logic_error for sends and receives that do not match.
[[nodiscard]] Lowered lower(const Plan& plan, const Placement& placement,
                            const CostOptions& options,
                            FollowLinks follow = FollowLinks::where_messages_meet);

}  // namespace shardsim
