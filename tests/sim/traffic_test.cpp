// Collectives as flows: against closed forms where nothing is contended, folded against unfolded
// everywhere.
#include "sim/network/traffic.hpp"

#include <rapidcheck.h>

#include <catch2/catch.hpp>
#include <numeric>

#include "hardware_profiles/network/topologies.hpp"
#include "sim/network/algorithms/halving_doubling.hpp"
#include "sim/network/algorithms/pairwise.hpp"
#include "sim/network/algorithms/ring.hpp"
#include "tests/sim/networks.hpp"

namespace shardsim::network::traffic_test {
namespace {

using testing::all_devices;
using testing::Groups;
using testing::traffic_on;
using testing::wire;

// steps * (latency + bytes / bandwidth), each step rounded up to a femtosecond.
FlowTime steps_of(std::int64_t steps, Bytes bytes, Seconds latency) {
  return steps * (round_up_to_flow_time(latency) + round_up_to_flow_time(bytes / wire.bandwidth));
}

}  // namespace

TEST_CASE("a ring all-reduce takes what its formula says") {
  // 1 GiB over 1024 devices on 50 GiB/s, 500 ns: 2046 steps of 1 MiB, 40,983,938 ns.
  const NetworkGraph graph = ring(1024, wire, {});
  const Traffic traffic =
      traffic_on(graph, {all_devices(graph)}, schedule_of({1024}, ring_all_reduce(1024)));
  const FlowTime time = run(traffic, Bytes(GiB));
  CHECK(time == steps_of(2046, Bytes(MiB), wire.latency));
  CHECK(time.count() / 1'000'000 == 40'983'937);  // in ns, and half of one
  const Traffic folded = fold(traffic);
  CHECK(folded.alike == std::vector<std::int64_t>{1024});
  CHECK(run(folded, Bytes(GiB)) == time);
  CHECK(run(folded, Bytes(GiB), Repeats::skipped) == time);
  CHECK(run(traffic, Bytes(GiB), Repeats::skipped) == time);
}

TEST_CASE("partners of a full mesh do not disturb each other") {
  const NetworkGraph graph = full(8, wire, {});
  const Groups group{all_devices(graph)};
  // 2 (P/2 + P/4 + P/8) in 6 steps.
  const Bytes payload(8 * MiB);
  CHECK(run(traffic_on(graph, group, schedule_of({8}, halving_doubling_all_reduce(8))), payload) ==
        steps_of(2, Bytes(4 * MiB), wire.latency) + steps_of(2, Bytes(2 * MiB), wire.latency) +
            steps_of(2, Bytes(MiB), wire.latency));
  CHECK(run(traffic_on(graph, group, schedule_of({8}, pairwise_all_to_all(8))), payload) ==
        steps_of(7, Bytes(MiB), wire.latency));
}

TEST_CASE("a chunk that two streams bring goes on when both have brought it") {
  // 0 and 1 send 8 chunks to 2, which passes them on to 3, all over wires of their own, but that
  // of 1 is four times slower: 8 chunks of 1 there, and the last again over the next wire. While 2
  // sends a chunk the next has come from 0, which changes nothing.
  NetworkBuilder builder(4);
  const Wire slow{wire.bandwidth / 4, wire.latency};
  builder.connect(0, 2, wire);
  builder.connect(1, 2, slow);
  builder.connect(2, 3, wire);
  const NetworkGraph graph = std::move(builder).freeze({});
  Schedule schedule;
  const auto chunks = schedule.kind({.chunk = Bytes(MiB)});
  const StreamId fast = schedule.add(0, 2, chunks, {});
  const StreamId other = schedule.add(1, 2, chunks, {});
  schedule.add(2, 3, chunks, {{fast, Until::same}, {other, Until::same}});
  const FlowTime chunk = round_up_to_flow_time(Bytes(MiB) / wire.bandwidth);
  const FlowTime slowly = round_up_to_flow_time(Bytes(MiB) / slow.bandwidth);
  const FlowTime time = run(traffic_on(graph, {all_devices(graph)}, schedule), Bytes(8 * MiB));
  CHECK(time == 2 * round_up_to_flow_time(wire.latency) + 8 * slowly + chunk);
}

TEST_CASE("messages that go further share links on their way") {
  // On a ring of 8 every link carries the messages of four devices to those four further on; they
  // go both ways round, each from every other device: two on a link, four hops of latency.
  const NetworkGraph graph = ring(8, wire, {});
  const Lanes lanes{{Phase{{}, {Shift{0, 4}}}}};
  CHECK(run(traffic_on(graph, {all_devices(graph)}, schedule_of({8}, lanes)), Bytes(MiB)) ==
        steps_of(1, Bytes(2 * MiB), 4.0 * wire.latency));
}

TEST_CASE("groups that share links contend") {
  // Four groups of two across a fat tree with half as many wires up as down: two messages a wire.
  const NetworkGraph graph = fat_tree({4, 2}, {2}, wire, {});
  const Groups one{{0, 4}};
  const Groups four{{0, 4}, {1, 5}, {2, 6}, {3, 7}};
  const Schedule schedule = schedule_of({2}, ring_all_gather(2));
  const Bytes payload(2 * MiB);
  const auto choice = RouteChoice::by_destination;
  CHECK(run(traffic_on(graph, one, schedule, choice), payload) ==
        steps_of(1, Bytes(MiB), 4.0 * wire.latency));
  const Traffic all = traffic_on(graph, four, schedule, choice);
  CHECK(run(all, payload) == steps_of(1, Bytes(2 * MiB), 4.0 * wire.latency));
  CHECK(fold(all).alike == std::vector<std::int64_t>{8});
}

TEST_CASE("more hops than asked for are refused") {
  // 7 phases of 8 messages, of 1 + 2 + 3 + 4 + 3 + 2 + 1 hops.
  const NetworkGraph graph = ring(8, wire, {});
  Router router(graph, RouteChoice::first);
  const Groups group{all_devices(graph)};
  const Schedule schedule = schedule_of({8}, pairwise_all_to_all(8));
  CHECK(traffic_of(graph, router, group, schedule, 128).crossings.size() == 128);
  CHECK_THROWS_WITH(traffic_of(graph, router, group, schedule, 127),
                    Catch::Contains("more than 127 hops of messages"));
}

TEST_CASE("a rank that is done early waits for what it has to receive") {
  // Device 0 sends to 1 over a wire that is a fourth as fast as the others: who depends on it is
  // late, step by step.
  NetworkBuilder builder(3);
  const Wire slow{wire.bandwidth / 4.0, wire.latency};
  builder.connect_one_way(0, 1, slow);
  builder.connect_one_way(1, 2, wire);
  builder.connect_one_way(2, 0, wire);
  const NetworkGraph graph = std::move(builder).freeze({});
  const Traffic traffic = traffic_on(graph, {{0, 1, 2}}, schedule_of({3}, ring_all_gather(3)));
  // Both steps of device 0 go over the slow wire, one after the other.
  CHECK(run(traffic, Bytes(3 * MiB)) == steps_of(2, Bytes(4 * MiB), wire.latency));
}

TEST_CASE("a message is its part of the payload, rounded up") {
  // 100 B in 7 parts: 14.3 B, three of them 42.9 B; in chunks of 30 B of the payload, of which
  // there are four, 10.7 B.
  CHECK(Messages{.parts = 7}.bytes(Bytes(100)) == Bytes(15));
  CHECK(Messages{.blocks = 3, .parts = 7}.bytes(Bytes(100)) == Bytes(43));
  const Messages chunks{.blocks = 3, .parts = 7, .chunk = Bytes(30)};
  CHECK(chunks.count(Bytes(100)) == 4);
  CHECK(chunks.bytes(Bytes(100)) == Bytes(11));
}

// One by one the test would not end.
TEST_CASE("rounds that repeat cost nothing") {
  const NetworkGraph graph = full(2, wire, {});
  const auto time = [&](std::int64_t messages) {
    Schedule schedule;
    schedule.add(0, 1, schedule.kind({.parts = 64, .steps = messages}), {});
    schedule.add(1, 0, schedule.kind({.parts = 32, .steps = 3}), {});
    const Traffic traffic = traffic_on(graph, {{0, 1}}, schedule);
    return run(traffic, Bytes(4096), Repeats::skipped);
  };
  // Each takes 501 ns: 18 billion 2.5 hours.
  constexpr std::int64_t billion = 1'000'000'000;
  CHECK(time(billion) == steps_of(billion, Bytes(64), wire.latency));
  CHECK(time(18 * billion) == steps_of(18 * billion, Bytes(64), wire.latency));
  CHECK_THROWS_WITH(time(20 * billion), Catch::Contains("longer than 2.5 hours"));
}

TEST_CASE("latency is that of the slowest chain") {
  // Over a switch of two hops: 7 steps; a chain of 3 ranks passes 4 chunks on, which follow
  // closely.
  const NetworkGraph graph = switched(8, wire, {});
  const FlowTime hop = round_up_to_flow_time(wire.latency);
  const Traffic gather =
      traffic_on(graph, {all_devices(graph)}, schedule_of({8}, ring_all_gather(8)));
  CHECK(latency_of(gather, Bytes(MiB)) == 14 * hop);
  CHECK(latency_of(fold(gather), Bytes(MiB)) == 14 * hop);
  Schedule chain;
  const std::uint32_t chunks = chain.kind({.chunk = Bytes(MiB)});
  const StreamId first = chain.add(0, 1, chunks, {});
  chain.add(1, 2, chunks, {{first, Until::same}});
  CHECK(latency_of(traffic_on(graph, {{0, 1, 2}}, chain), Bytes(4 * MiB)) == 4 * hop);
}

TEST_CASE("the end is when the last message has come, not when it was once thought to come") {
  // 1 MiB and 2 MiB over one link: until the first is there both have half of it.
  const NetworkGraph graph = full(2, wire, {});
  Schedule schedule;
  schedule.add(0, 1, schedule.kind({.parts = 2}), {});
  schedule.add(0, 1, schedule.kind({}), {});
  CHECK(run(traffic_on(graph, {{0, 1}}, schedule), Bytes(2 * MiB)) ==
        steps_of(1, Bytes(3 * MiB), wire.latency));
}

TEST_CASE("chunks follow closely") {
  // Device 0 to 1 to 2, four chunks of 1 MiB: both latencies once, five times a chunk.
  const NetworkGraph graph = full(3, wire, {});
  Schedule chain;
  const std::uint32_t chunks = chain.kind({.chunk = Bytes(MiB)});
  const StreamId first = chain.add(0, 1, chunks, {});
  chain.add(1, 2, chunks, {{first, Until::same}});
  CHECK(run(traffic_on(graph, {{0, 1, 2}}, chain), Bytes(4 * MiB)) ==
        2 * round_up_to_flow_time(wire.latency) +
            5 * round_up_to_flow_time(Bytes(MiB) / wire.bandwidth));
  // Chunks shorter than the latency: those of device 1 are ready when the ones before are not sent.
  const Wire far{wire.bandwidth, Seconds(1e-3)};
  const NetworkGraph wide = full(3, far, {});
  CHECK(run(traffic_on(wide, {{0, 1, 2}}, chain), Bytes(4 * MiB)) ==
        2 * round_up_to_flow_time(far.latency) +
            5 * round_up_to_flow_time(Bytes(MiB) / wire.bandwidth));
}

}  // namespace shardsim::network::traffic_test
