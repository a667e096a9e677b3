// From blocks to a plan: the actions of a schedule are unrolled over the order of layers,
// dependencies and lifetimes written down.
//
// A pass over one instance of one block is a segment; segments follow each other in execution
// order. Parameters of segment k may be gathered once segment k - 1 - prefetch has computed, so
// that `prefetch` units wait ready beside the one at work; the unit that opens the backward pass is
// gathered when it is first read, as FSDP2's root is. A value dies with its last reader; a
// gathered unit, where it is given back whole, with its segment.
//
// Segment k waits for the gradient reductions of segment k - 2 that leave something to give back,
// as FSDP2 waits for a unit's reduce-scatter before it issues the next: unreduced gradients of two
// units are there at most, however slow links are.
#pragma once

#include "base/error.hpp"
#include "plan/plan.hpp"
#include "strategies/partition/spmd.hpp"
#include "strategies/schedule/schedule.hpp"

namespace shardsim {

// Throws InputError for a step of more than 2^22 tasks.
void check_task_count(const SpmdStep& step, const Workload& workload, std::int64_t microbatches,
                      const Place& place);

// Fills mesh, names, kernels, collectives and one program of the plan. `schedule` has one stage, of
// which no two microbatches are under way at once (accumulation.hpp).
[[nodiscard]] Plan emit(const SpmdStep& step, const Workload& workload, const Mesh& mesh,
                        const PipelineSchedule& schedule, int prefetch);

}  // namespace shardsim
