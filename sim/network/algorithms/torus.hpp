// On a torus all axes at once: the payload is shared by as many lanes as there are axes, each of
// which takes the axes in an order of its own, so that no two are on one axis at the same time; and
// on every axis rings go both ways. Axes n_1 ... n_D, N ranks.
//
//   all-gather      lane j gathers along axis j, then j + 1, ...: (n - 1) steps for an axis, of
//                   P / (2 D N) times the sizes of the axes before
//   reduce-scatter  the same backwards
//   all-reduce      one, then the other
//   all-to-all      lane j exchanges along axis j, then j + 1, ...: what goes h ranks further on is
//                   passed on h times, half of it each way; step s carries what goes s or further
//
// Time where all axes have n > 2 ranks:
//   all-gather  sum over i = 0 ... D-1 of (n - 1) (latency + P n^i / (2 D N) / bandwidth)
//   all-to-all  D times sum over s = 1 ... floor(n / 2) of latency + b_s P / (2 D n) / bandwidth,
//               b_s = n - 2 s + 1: of n - 1 ranks each way those that are s or further, by halves
//
// Example: 4 x 4, all-gather of 1 GiB: 3 steps of 16 MiB, then 3 of 64 MiB, on every link.
//
// Sack and Gropp, "Collective algorithms for multiported torus networks", ACM TOPC 1(2), 2015, for
// rings on all axes; Kumar, Sabharwal, Garg and Heidelberger, "Optimization of all-to-all
// communication on the Blue Gene/L supercomputer", ICPP 2008, for exchanges axis by axis.
#pragma once

#include "sim/network/phases.hpp"
#include "sim/network/way.hpp"

namespace shardsim::network {

// Axes of one rank are passed over. No lanes for a single rank.
[[nodiscard]] Lanes torus_all_gather(const Shape& shape);
[[nodiscard]] Lanes torus_reduce_scatter(const Shape& shape);
[[nodiscard]] Lanes torus_all_reduce(const Shape& shape);
[[nodiscard]] Lanes torus_all_to_all(const Shape& shape);

// `axes` of `size`, above 2. An all-reduce takes twice as long as an all-gather.
[[nodiscard]] FlowTime torus_all_gather_time(std::int64_t axes, std::int64_t size, Bytes payload,
                                             const Way& way);
[[nodiscard]] FlowTime torus_all_to_all_time(std::int64_t axes, std::int64_t size, Bytes payload,
                                             const Way& way);

}  // namespace shardsim::network
