// Two levels, for machines with nodes: rings within each node, rings across nodes of the ranks that
// have the same place in theirs. N ranks, m in each of n nodes; rank = node * m + place.
//
//   all-reduce      reduce-scatter in the node, all-reduce of an m-th across, all-gather in it
//   reduce-scatter  in the node, then of an m-th across
//   all-gather      across, of P / N parts, then in the node
//   all-to-all      pairwise in the node, to the rank of the target's place what is for all ranks
//                   of that place; then pairwise across, what the node has for the target
//
//   time of an all-gather = (n - 1) (latency across + P / N / bandwidth)
//                           + (m - 1) (latency in the node + P / m / bandwidth)
//   of a reduce-scatter the same, of an all-reduce twice that
//   of an all-to-all = (m - 1) (latency in the node + P / m / bandwidth)
//                      + (n - 1) (latency across + P / n / bandwidth)
//   which sends more than pairwise exchange, in fewer messages: m + n - 2, not N - 1
//
// Example: 4 nodes of 8, all-reduce of 1 GiB: 7 steps of 128 MiB, 6 of 32 MiB across, 7 of 128 MiB.
//
// Mikami and others, "Massively distributed SGD: ImageNet/ResNet-50 training in a flash",
// arXiv:1811.05233, 2018 (2D-torus all-reduce). Hwang and others, "Tutel: adaptive
// mixture-of-experts at scale", arXiv:2206.03382, 2022 (2DH all-to-all).
#pragma once

#include "sim/network/phases.hpp"
#include "sim/network/way.hpp"

namespace shardsim::network {

// For groups of the shape {nodes, per_node}.
[[nodiscard]] Lanes hierarchical_all_gather(std::int64_t nodes, std::int64_t per_node);
[[nodiscard]] Lanes hierarchical_reduce_scatter(std::int64_t nodes, std::int64_t per_node);
[[nodiscard]] Lanes hierarchical_all_reduce(std::int64_t nodes, std::int64_t per_node);

// The payload is one rank's array.
[[nodiscard]] Lanes hierarchical_all_to_all(std::int64_t nodes, std::int64_t per_node);

// Of an all-gather and of a reduce-scatter; an all-reduce takes twice as long.
[[nodiscard]] FlowTime hierarchical_time(std::int64_t nodes, std::int64_t per_node, Bytes payload,
                                         const Way& across, const Way& inside);
[[nodiscard]] FlowTime hierarchical_all_to_all_time(std::int64_t nodes, std::int64_t per_node,
                                                    Bytes payload, const Way& across,
                                                    const Way& inside);

}  // namespace shardsim::network
