// Collectives on a torus: rings and lines along its dimensions, several at once.
//
// A group has a lane in every dimension in which it extends, a ring or a line (torus_lanes.hpp). Of
// a lane with n members, w = bandwidth of one link in one direction:
//
//   rate     what a member can take in along the lane: ring 2 w / sharing, line w / sharing (its
//            end has one neighbour); the devices of a chip share its links, and have one of their
//            own between them, which is a line
//
// With N members in all, payload P and lanes i:
//
//   all-gather, reduce-scatter  P / N * max over sets S of lanes (prod_S n_i - 1) / sum_S rate_i
//                               one ring: P (n-1) / (n 2 w);  k equal rings: P (N-1) / (N k 2 w)
//   all-reduce                  twice that
//   all-to-all                  P * max over lanes floor(n^2 / 4) / n / rate; over a whole twisted
//                               slice P * average hops / (links of a chip * w)
//   permute, listed groups      routed link by link (torus_routes.hpp)
//   latency                     sum of hops * latency, twice for an all-reduce
//
// On slices of TPUs the collective is what XLA's TPU compiler makes of it
// (tpu/compiler_choice.hpp), unless the model takes all links (TorusLinks):
//
//   rewritten  an all-gather or a reduce-scatter may end as an all-reduce, at twice the time
//   one ring   over all members of several lanes, both ways, each hop to a neighbour:
//              P (N-1) / N * sharing / (2 w), hops floor(N/2) * sharing, an all-reduce twice
//
// What is taken of the links while it transfers (CostBreakdown::links), by dimension: of the lanes
// of the set S that bounds all; the others carry the rest of the shares, evenly among them, prod_S
// n_i (prod_rest n_i - 1) / sum_rest rate_i of the time. Of an all-to-all each lane's time over
// that of the slowest; of one ring all, as its links are full wherever it goes; of what is routed
// that of the busiest link, up and down.
//
// Example: all-gather of 256 MB over a wrapped dimension of 8 chips, links of 90 GB/s:
//   256e6 * 7/8 / (2 * 90e9) = 1.24 ms, and 4 hops of latency.
#pragma once

#include "sim/collectives/cost_breakdown.hpp"
#include "sim/collectives/placement.hpp"

namespace shardsim {

[[nodiscard]] CostBreakdown torus_cost(const Placement& placement, const Collective& collective);

}  // namespace shardsim
