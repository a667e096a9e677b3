// From blocks to a plan: layers are unrolled, dependencies and lifetimes written down.
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
#include "strategies/spmd.hpp"

namespace shardsim {

// Fills mesh, names, kernels, collectives and one program of the plan. Throws InputError for a step
// of more than 2^22 tasks, before it makes any.
[[nodiscard]] Plan emit(const SpmdStep& step, const Workload& workload, const Mesh& mesh,
                        int prefetch, const Place& place);

}  // namespace shardsim
