// How many flows per second the fair-share solver and the flow simulation come through.
#include <benchmark/benchmark.h>

#include <array>

#include "sim/network/flow_simulation.hpp"

namespace shardsim::network {
namespace {

// Of the machine and the array for which times of ASTRA-sim and SimGrid are known at 1,024 and
// 4,096 devices (docs/networks.md).
constexpr std::int64_t payload = GiB;
constexpr Bandwidth bandwidth{50.0 * GiB};
constexpr Seconds latency_of_link{500e-9};
constexpr std::int64_t few_devices = 64;
constexpr std::int64_t peers_small = 1024;
constexpr std::int64_t peers_large = 4096;

// A ring all-reduce, every flow of its own: each device sends to the next a step as soon
// as it has received the one before.
void ring_all_reduce(benchmark::State& state) {
  const auto devices = static_cast<std::size_t>(state.range(0));
  const std::int64_t steps = 2 * (state.range(0) - 1);
  const Bytes chunk(payload / state.range(0));
  const FlowTime latency = round_up_to_flow_time(latency_of_link);
  std::vector<Crossing> crossings;
  for (std::size_t i = 0; i < devices; ++i) crossings.push_back({static_cast<LinkId>(i)});
  for (auto _ : state) {
    FlowSimulation flows(std::vector<Bandwidth>(devices, bandwidth));
    std::vector<std::size_t> sender(devices);
    std::vector<std::int64_t> sent(devices, 0);
    std::vector<std::int64_t> received(devices, 0);
    const auto send = [&](std::size_t device) {
      const FlowId id = flows.start(flows.now() + latency, chunk, Crossings(&crossings[device], 1));
      if (static_cast<std::size_t>(id) >= sender.size()) sender.resize(2 * sender.size());
      sender[static_cast<std::size_t>(id)] = device;
    };
    for (std::size_t i = 0; i < devices; ++i) send(i);
    while (flows.advance()) {
      for (const FlowId id : flows.finished()) {
        const std::size_t from = sender[static_cast<std::size_t>(id)];
        const std::size_t to = from + 1 < devices ? from + 1 : 0;
        ++sent[from];
        ++received[to];
        if (sent[from] <= received[from] && sent[from] < steps) send(from);
        if (received[to] <= sent[to] && to != from && received[to] < steps) send(to);
      }
    }
    state.counters["simulated_ns"] = to_seconds(flows.now()).count() * 1e9;
  }
  state.SetItemsProcessed(state.iterations() * state.range(0) * steps);
}
BENCHMARK(ring_all_reduce)
    ->Arg(few_devices)
    ->Arg(peers_small)
    ->Arg(peers_large)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace shardsim::network
