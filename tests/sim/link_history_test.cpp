// What links carry over time, against what can be worked out by hand: links of 1 GB/s and 1 us, on
// which 1 MB takes 1 ms.
#include <catch2/catch.hpp>

#include "base/index.hpp"
#include "hardware_profiles/network/topologies.hpp"
#include "sim/network/algorithms/hierarchical.hpp"
#include "sim/network/algorithms/ring.hpp"
#include "sim/network/algorithms/tree.hpp"
#include "sim/network/link_recorder.hpp"
#include "tests/sim/networks.hpp"

namespace shardsim::network::link_history_test {
namespace {

using Catch::Matchers::Approx;
using testing::all_devices;
using testing::traffic_on;

constexpr std::int64_t millisecond = 1'000'000'000'000;  // in femtoseconds
const Wire link_of_1_gb{Bandwidth(1e9), Seconds(1e-6)};

struct Observed {
  NetworkGraph graph;
  FlowTime time{0};
  std::vector<LinkHistory> histories;  // by link

  [[nodiscard]] const LinkHistory& from_to(NodeId from, NodeId to) const {
    for (std::size_t i = 0; i < histories.size(); ++i) {
      const NetworkLink& link = graph.links()[i];
      if (link.from == from && link.to == to) return histories[i];
    }
    FAIL("no such link");
    return histories.front();
  }
};

Observed observed(NetworkGraph graph, const Schedule& schedule, Bytes payload, std::size_t bins,
                  RouteChoice choice = RouteChoice::first) {
  const Traffic traffic = traffic_on(graph, {all_devices(graph)}, schedule, choice);
  const FlowTime time = run(traffic, payload);
  return {std::move(graph), time, links_over_time(traffic, payload, time, bins)};
}

void check_full(const LinkHistory& history, double full, double first, double last) {
  CHECK(history.full.count() == ::Approx(full));
  CHECK(history.first_full.count() == ::Approx(first));
  CHECK(history.last_full.count() == ::Approx(last));
}

}  // namespace

TEST_CASE("bytes of bins are integrals of rates that are constant in pieces") {
  // 1 MB from 0 on over links a and b, 1 MB from 0.5 ms on over a alone. Together on a they have
  // half of it each: the first is there at 1.5 ms, the second at 2 ms.
  const std::vector<Bandwidth> capacities(2, Bandwidth(1e9));
  FlowSimulation flows(capacities);
  LinkRecorder recorder(capacities, FlowTime(2 * millisecond), /*bins=*/4);
  flows.record(recorder);
  const std::vector<Crossing> both{{0}, {1}};
  const std::vector<Crossing> only_a{{0}};
  flows.start(FlowTime(0), Bytes(1'000'000), both);
  flows.start(FlowTime(millisecond / 2), Bytes(1'000'000), only_a);
  while (flows.advance()) continue;
  const std::vector<LinkHistory> histories = std::move(recorder).histories();
  CHECK_THAT(histories[0].bytes, Approx(std::vector<double>{5e5, 5e5, 5e5, 5e5}));
  check_full(histories[0], 2e-3, 0, 2e-3);
  CHECK_THAT(histories[1].bytes, Approx(std::vector<double>{5e5, 2.5e5, 2.5e5, 0}));
  check_full(histories[1], 0.5e-3, 0, 0.5e-3);
}

TEST_CASE("a class of flows counts as often as it crosses a link") {
  // Three flows of 1 MB share a link of 1 GB/s: 3 ms, of which the second of two bins is a half.
  const std::vector<Bandwidth> capacities{Bandwidth(1e9)};
  FlowSimulation flows(capacities);
  LinkRecorder recorder(capacities, FlowTime(3 * millisecond), /*bins=*/2);
  flows.record(recorder);
  const std::vector<Crossing> three{{0, 3}};
  flows.start(FlowTime(0), Bytes(1'000'000), three);
  while (flows.advance()) continue;
  const std::vector<LinkHistory> histories = std::move(recorder).histories();
  CHECK_THAT(histories[0].bytes, Approx(std::vector<double>{1.5e6, 1.5e6}));
  check_full(histories[0], 3e-3, 0, 3e-3);
}

TEST_CASE("links of a ring are busy all the time, but for latencies") {
  // An all-gather of 4 MB over 4: three steps of 1.001 ms, in bins of 50.05 us. Those in which a
  // step begins, the 1st, 21st and 41st, lack 1 us of bytes.
  const Observed on =
      observed(ring(4, link_of_1_gb, {}), schedule_of({4}, ring_all_gather(4)), Bytes(4'000'000),
               /*bins=*/60);
  for (NodeId device = 0; device < 4; ++device) {
    const LinkHistory& up = on.from_to(device, (device + 1) % 4);
    for (std::size_t bin = 0; bin < 60; ++bin) {
      CHECK(up.bytes[bin] == ::Approx(bin % 20 == 0 ? 49'050 : 50'050));
    }
    check_full(up, 3e-3, 1e-6, 3.003e-3);
    const LinkHistory& down = on.from_to((device + 1) % 4, device);
    CHECK(down.bytes == std::vector<double>(60, 0));
    CHECK(down.full == Seconds(0));
  }
}

TEST_CASE("in a tree links work one level after the other, those of the root later") {
  // A binomial all-reduce of 1 MB over 4: 1 and 3 send to 0 and 2, 2 to 0; then the same way back.
  // Four steps of 1.001 ms, in as many bins: each link works in one of them.
  const Observed on = observed(full(4, link_of_1_gb, {}), schedule_of({4}, binomial_all_reduce(4)),
                               Bytes(1'000'000), /*bins=*/4);
  const auto works_in = [&](NodeId from, NodeId to, std::size_t step) {
    std::vector<double> bytes(4, 0);
    bytes[step] = 1e6;
    CHECK_THAT(on.from_to(from, to).bytes, Approx(bytes));
    const double begin = 1.001e-3 * static_cast<double>(step);
    check_full(on.from_to(from, to), 1e-3, begin + 1e-6, begin + 1.001e-3);
  };
  works_in(1, 0, 0);
  works_in(3, 2, 0);
  works_in(2, 0, 1);
  works_in(0, 2, 2);
  works_in(0, 1, 3);
  works_in(2, 3, 3);
}

TEST_CASE("links between leaves are idle while the leaves are at work by themselves") {
  // Two leaves of four, all-reduce of 8 MB: three steps of 2 MB in the leaf, of 2.002 ms; two of
  // 1 MB across four links, of 1.004 ms, each pair over a spine of its own; three in the leaf.
  const NetworkGraph graph = fat_tree({4, 2}, {1}, link_of_1_gb, {});
  const Observed on =
      observed(graph, schedule_of({2, 4}, hierarchical_all_reduce(2, 4)), Bytes(8'000'000),
               /*bins=*/60, RouteChoice::by_destination);
  CHECK(to_seconds(on.time).count() == ::Approx(2 * 6.006e-3 + 2.008e-3));
  const double width = to_seconds(on.time).count() / 60;
  int between = 0;
  for (std::size_t i = 0; i < on.histories.size(); ++i) {
    const NetworkLink& link = graph.links()[i];
    const LinkHistory& history = on.histories[i];
    if (graph.is_device(link.from) || graph.is_device(link.to)) {
      // At work in all three phases: 6 MB, 2 MB and 6 MB.
      check_full(history, 14e-3, 2e-6, to_seconds(on.time).count());
      continue;
    }
    ++between;
    check_full(history, 2e-3, 6.01e-3, 8.014e-3);
    for (std::size_t bin = 0; bin < 60; ++bin) {
      const double begin = width * static_cast<double>(bin);
      if (begin + width <= 6.01e-3 || begin >= 8.014e-3) CHECK(history.bytes[bin] == 0);
    }
  }
  CHECK(between == 4 * 2 * 2);  // spines, leaves, directions
}

}  // namespace shardsim::network::link_history_test
