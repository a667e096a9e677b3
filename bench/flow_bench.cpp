// How many flows per second the fair-share solver and the flow simulation come through.
#include <benchmark/benchmark.h>

#include <array>

#include "sim/network/flow_simulation.hpp"

namespace shardsim::network {
namespace {

// A ring all-reduce of 1 GiB, every flow of its own: each device sends to the next a step as soon
// as it has received the one before.
void ring_all_reduce(benchmark::State& state) {
  const auto devices = static_cast<std::size_t>(state.range(0));
  const std::int64_t steps = 2 * (state.range(0) - 1);
  const Bytes chunk(GiB / state.range(0));
  const FlowTime latency = round_up_to_flow_time(Seconds(500e-9));
  std::vector<Crossing> crossings;
  for (std::size_t i = 0; i < devices; ++i) crossings.push_back({static_cast<LinkId>(i)});
  for (auto _ : state) {
    FlowSimulation flows(std::vector<Bandwidth>(devices, Bandwidth(50.0 * GiB)));
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
    state.counters["simulated_ns"] = static_cast<double>(flows.now().count()) / 1e6;
  }
  state.SetItemsProcessed(state.iterations() * state.range(0) * steps);
}
BENCHMARK(ring_all_reduce)->Arg(64)->Arg(1024)->Arg(4096)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace shardsim::network
