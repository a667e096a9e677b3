#include "sim/network/algorithms/hierarchical.hpp"

#include <algorithm>

namespace shardsim::network {
namespace {

constexpr std::size_t across_nodes = 0;  // axes of the shape
constexpr std::size_t inside_node = 1;

Phases gather(std::int64_t nodes, std::int64_t per_node) {
  Phases phases;
  const auto ring = [&](std::size_t axis, std::int64_t ranks, std::int64_t parts) {
    if (ranks > 1) {
      phases.push_back({{.parts = parts, .steps = ranks - 1}, {Shift{axis, 1}}});
    }
  };
  ring(across_nodes, nodes, nodes * per_node);
  ring(inside_node, per_node, per_node);
  return phases;
}

Phases scatter(std::int64_t nodes, std::int64_t per_node) {
  Phases phases = gather(nodes, per_node);
  std::reverse(phases.begin(), phases.end());
  return phases;
}

}  // namespace

Lanes hierarchical_all_gather(std::int64_t nodes, std::int64_t per_node) {
  return {gather(nodes, per_node)};
}

Lanes hierarchical_reduce_scatter(std::int64_t nodes, std::int64_t per_node) {
  return {scatter(nodes, per_node)};
}

Lanes hierarchical_all_reduce(std::int64_t nodes, std::int64_t per_node) {
  Phases phases = scatter(nodes, per_node);
  const Phases back = gather(nodes, per_node);
  phases.insert(phases.end(), back.begin(), back.end());
  return {std::move(phases)};
}

Lanes hierarchical_all_to_all(std::int64_t nodes, std::int64_t per_node) {
  Phases phases;
  const auto exchange = [&](std::size_t axis, std::int64_t ranks) {
    for (std::int64_t by = 1; by < ranks; ++by) {
      phases.push_back({{.parts = ranks}, {Shift{axis, by}}});
    }
  };
  exchange(inside_node, per_node);
  exchange(across_nodes, nodes);
  return {std::move(phases)};
}

FlowTime hierarchical_time(std::int64_t nodes, std::int64_t per_node, Bytes payload,
                           const Way& across, const Way& inside) {
  return (nodes - 1) * across.time(Bytes(ceil_div(payload.count(), nodes * per_node))) +
         (per_node - 1) * inside.time(Bytes(ceil_div(payload.count(), per_node)));
}

FlowTime hierarchical_all_to_all_time(std::int64_t nodes, std::int64_t per_node, Bytes payload,
                                      const Way& across, const Way& inside) {
  return (nodes - 1) * across.time(Bytes(ceil_div(payload.count(), nodes))) +
         (per_node - 1) * inside.time(Bytes(ceil_div(payload.count(), per_node)));
}

}  // namespace shardsim::network
