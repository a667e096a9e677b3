// Work that is always the same, for counting instructions (tests/instruction_count.cmake):
//
//   fixed_work ring         130,560 messages of a ring all-reduce over 256 devices, unfolded
//   fixed_work fold         an all-to-all over a ring of 64 devices, folded
//   fixed_work fair-share   512 flows over pairs of 256 links, of which each leaves and joins once
//
// What comes out is printed, so that nothing of it can be left away.
#include <fmt/format.h>

#include <array>
#include <iostream>
#include <numeric>
#include <random>
#include <string>

#include "hardware_profiles/network/topologies.hpp"
#include "sim/network/algorithms/pairwise.hpp"
#include "sim/network/algorithms/ring.hpp"
#include "sim/network/traffic.hpp"

namespace shardsim::network {
namespace {

Traffic on_a_ring(NodeId devices, const Lanes& lanes) {
  const NetworkGraph graph = ring(devices, {Bandwidth(50.0 * GiB), Seconds(500e-9)}, {});
  Router router(graph, RouteChoice::first);
  std::vector<NodeId> group(static_cast<std::size_t>(devices));
  std::iota(group.begin(), group.end(), 0);
  return traffic_of(graph, router, {group}, schedule_of({devices}, lanes));
}

std::int64_t simulate_ring() {
  return run(on_a_ring(256, ring_all_reduce(256)), Bytes(GiB)).count();
}

std::int64_t fold_all_to_all() {
  return static_cast<std::int64_t>(fold(on_a_ring(64, pairwise_all_to_all(64))).streams.size());
}

std::int64_t share_fairly() {
  constexpr std::size_t links = 256;
  constexpr std::size_t flows = 512;
  FairShare shares(std::vector<Bandwidth>(links, Bandwidth(1e9)));
  std::mt19937 random(/*seed=*/1);
  std::vector<std::array<Crossing, 2>> routes;
  for (std::size_t id = 0; id < flows; ++id) {
    const auto first = random() % links;
    const auto second = (first + 1 + random() % (links - 1)) % links;
    routes.push_back({Crossing{static_cast<LinkId>(first)}, Crossing{static_cast<LinkId>(second)}});
  }
  std::int64_t changed = 0;
  for (std::size_t id = 0; id < flows; ++id) shares.join(static_cast<FlowId>(id), routes[id]);
  for (std::size_t id = 0; id < flows; ++id) {
    shares.leave(static_cast<FlowId>(id));
    shares.join(static_cast<FlowId>(id), routes[id]);
    changed += static_cast<std::int64_t>(shares.update_rates().size());
  }
  return changed;
}

}  // namespace
}  // namespace shardsim::network

int main(int argc, char** argv) {
  using namespace shardsim::network;  // NOLINT(google-build-using-namespace)
  const std::string work = argc == 2 ? argv[1] : "";
  if (work == "ring") {
    std::cout << fmt::format("{} fs\n", simulate_ring());
  } else if (work == "fold") {
    std::cout << fmt::format("{} classes\n", fold_all_to_all());
  } else if (work == "fair-share") {
    std::cout << fmt::format("{} rates changed\n", share_fairly());
  } else {
    std::cerr << "usage: fixed_work ring|fold|fair-share\n";
    return 2;
  }
  return 0;
}
