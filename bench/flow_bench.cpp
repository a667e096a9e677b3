// How many flows per second the fair-share solver and the flow simulation come through.
#include <benchmark/benchmark.h>

#include <array>
#include <numeric>
#include <random>

#include "hardware_profiles/network/topologies.hpp"
#include "sim/collectives/collective_cost.hpp"
#include "sim/network/algorithms/pairwise.hpp"
#include "sim/network/algorithms/ring.hpp"
#include "sim/network/traffic.hpp"

namespace shardsim::network {
namespace {

// Of the machine and the array for which times of ASTRA-sim and SimGrid are known at 1,024 and
// 4,096 devices (docs/networks.md).
constexpr Bytes payload{GiB};
constexpr Bandwidth bandwidth{50.0 * GiB};
constexpr Seconds latency_of_link{500e-9};
constexpr std::int64_t few_devices = 64;
constexpr std::int64_t peers_small = 1024;
constexpr std::int64_t peers_large = 4096;
constexpr std::int64_t most_devices = 1'000'000;
constexpr std::size_t flows_per_link = 2;

Traffic ring_traffic(std::int64_t devices) {
  const NetworkGraph graph = ring(devices, {bandwidth, latency_of_link}, {});
  Router router(graph, RouteChoice::first);
  std::vector<NodeId> group(static_cast<std::size_t>(devices));
  std::iota(group.begin(), group.end(), 0);
  return traffic_of(graph, router, {group}, schedule_of({devices}, ring_all_reduce(devices)));
}

// Every message of its own.
void unfolded_ring_all_reduce(benchmark::State& state) {
  const Traffic traffic = ring_traffic(state.range(0));
  for (auto _ : state) {
    state.counters["simulated_ns"] = to_seconds(run(traffic, payload)).count() * 1e9;
  }
  state.SetItemsProcessed(state.iterations() * 2 * state.range(0) * (state.range(0) - 1));
}
BENCHMARK(unfolded_ring_all_reduce)
    ->Arg(few_devices)
    ->Arg(peers_small)
    ->Arg(peers_large)
    ->Unit(benchmark::kMillisecond);

// From the machine's text to the time: what `collective` does for one size.
void folded_ring_all_reduce(benchmark::State& state) {
  const std::int64_t devices = state.range(0);
  const Profile profile = load_profile("ring(bandwidth=50GiB/s,latency=500ns)", {});
  for (auto _ : state) {
    const Mesh mesh({{"device", devices}});
    const Placement placement(mesh, make_machine(profile, devices, std::nullopt, {}));
    Collective collective;
    collective.kind = CollectiveKind::all_reduce;
    collective.payload = payload;
    collective.axes = {mesh.whole(0)};
    state.counters["simulated_ns"] = collective_cost(placement, collective).total().count() * 1e9;
  }
}
BENCHMARK(folded_ring_all_reduce)
    ->Arg(peers_small)
    ->Arg(peers_large)
    ->Arg(most_devices)
    ->Unit(benchmark::kMicrosecond);

// An all-to-all over a torus of three dimensions, on the graph: what folding itself takes.
void fold_all_to_all(benchmark::State& state) {
  const Traffic traffic = [&] {
    const NetworkGraph graph = ring(state.range(0), {bandwidth, latency_of_link}, {});
    Router router(graph, RouteChoice::first);
    std::vector<NodeId> group(static_cast<std::size_t>(state.range(0)));
    std::iota(group.begin(), group.end(), 0);
    return traffic_of(graph, router, {group},
                      schedule_of({state.range(0)}, pairwise_all_to_all(state.range(0))));
  }();
  for (auto _ : state) benchmark::DoNotOptimize(fold(traffic));
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(traffic.streams.size()));
}
BENCHMARK(fold_all_to_all)->Arg(few_devices)->Arg(4 * few_devices)->Unit(benchmark::kMillisecond);

// Flows between random pairs of links, one of which ends and another begins at a time: every
// update_rates() has all of them to look at.
void fair_share(benchmark::State& state) {
  const auto links = static_cast<std::size_t>(state.range(0));
  FairShare shares(std::vector<Bandwidth>(links, bandwidth));
  std::mt19937 random(/*seed=*/1);
  std::vector<std::array<Crossing, 2>> routes(flows_per_link * links);
  for (auto& route : routes) {
    const auto first = random() % links;
    const auto second = (first + 1 + random() % (links - 1)) % links;
    route = {Crossing{static_cast<LinkId>(first)}, Crossing{static_cast<LinkId>(second)}};
  }
  for (std::size_t id = 0; id < routes.size(); ++id) {
    shares.join(static_cast<FlowId>(id), routes[id]);
  }
  shares.update_rates();
  std::size_t next = 0;
  for (auto _ : state) {
    const auto id = static_cast<FlowId>(next++ % routes.size());
    shares.leave(id);
    shares.join(id, routes[static_cast<std::size_t>(id)]);
    benchmark::DoNotOptimize(shares.update_rates());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(routes.size()));
}
// By links: from what a node has to what a large fabric has.
constexpr std::int64_t fewest_links = 16;
constexpr std::int64_t most_links = 8192;
BENCHMARK(fair_share)
    ->RangeMultiplier(8)
    ->Range(fewest_links, most_links)
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace shardsim::network
