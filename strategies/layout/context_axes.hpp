// Which of the axes that split a sequence a ring of attention goes over, and which split heads in
// its place.
//
//   ring             all of them, none
//   all-to-all       none, all of them
//   ring+all-to-all  the major part, the minor part: neighbours exchange heads, rings go from one
//                    group of these to the next (Megatron-Core's a2a+p2p with
//                    hierarchical_context_parallel_sizes [heads, ring]; USP, arXiv:2405.07719)
//
// Example: cp = 8 with heads over 4: heads cp:(2)4, rings of 2 over cp:(1)2.
#pragma once

#include "base/error.hpp"
#include "strategies/layout/assign.hpp"
#include "workloads/graph/op_graph.hpp"

namespace shardsim {

[[nodiscard]] AxisList ring_axes(const Layout& layout);
[[nodiscard]] AxisList head_axes(const Layout& layout);

// The same where the sequence is split over these two in place of its whole axes.
[[nodiscard]] Sharding with_sequence_cut(Sharding sharding, const Layout& layout);

// Of a ring of groups: how many devices split heads. Where that is not said, as many as divide the
// sequence's devices and all heads. Throws InputError at the strategy's "context": a number that
// cuts no group of neighbours.
void set_head_devices(const Workload& workload, const Place& strategy, Layout& layout);

}  // namespace shardsim
