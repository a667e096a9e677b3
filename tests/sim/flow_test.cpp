// Max-min fairness and flows over time, against what can be worked out by hand.
#include <array>
#include <catch2/catch.hpp>

#include "sim/network/flow_simulation.hpp"

namespace shardsim::network {
namespace {

using Route = std::vector<Crossing>;

constexpr std::int64_t millisecond = 1'000'000'000'000;  // in femtoseconds

TEST_CASE("flows share what each link has, and none is held where it need not be") {
  FairShare shares({Bandwidth(1), Bandwidth(0.5)});
  const std::array<Route, 3> routes{Route{{0}, {1}}, Route{{0}}, Route{{1}}};
  for (FlowId flow = 0; flow < 3; ++flow) shares.join(flow, routes[static_cast<std::size_t>(flow)]);
  CHECK(shares.update_rates().size() == 3);
  // b fills first, with two flows; a has 0.75 left for one.
  CHECK(shares.rate(0) == Bandwidth(0.25));
  CHECK(shares.rate(1) == Bandwidth(0.75));
  CHECK(shares.rate(2) == Bandwidth(0.25));
  shares.leave(0);
  CHECK(shares.update_rates().size() == 2);
  CHECK(shares.rate(1) == Bandwidth(1));
  CHECK(shares.rate(2) == Bandwidth(0.5));
}

TEST_CASE("only flows that are connected with a change are looked at") {
  FairShare shares({Bandwidth(1), Bandwidth(1)});
  const std::array<Route, 2> routes{Route{{0}}, Route{{1}}};
  shares.join(0, routes[0]);
  CHECK(shares.update_rates() == std::vector<FlowId>{0});
  shares.join(1, routes[1]);
  CHECK(shares.update_rates() == std::vector<FlowId>{1});
  CHECK(shares.update_rates().empty());
}

TEST_CASE("a class of flows has the rate of each of its flows") {
  // Two links with three flows each, as six flows and as one class.
  FairShare unfolded({Bandwidth(1), Bandwidth(1)});
  const std::array<Route, 2> routes{Route{{0}}, Route{{1}}};
  for (FlowId flow = 0; flow < 6; ++flow) {
    unfolded.join(flow, routes[static_cast<std::size_t>(flow % 2)]);
  }
  unfolded.update_rates();
  FairShare folded({Bandwidth(1)});
  const Route route{{0, 3}};
  folded.join(0, route);
  folded.update_rates();
  for (FlowId flow = 0; flow < 6; ++flow) CHECK(unfolded.rate(flow) == folded.rate(0));
}

TEST_CASE("a flow that another joins ends later") {
  FlowSimulation flows({Bandwidth(1e9)});
  const Route route{{0}};
  flows.start(FlowTime(0), Bytes(1'000'000), route);
  flows.start(FlowTime(millisecond / 2), Bytes(1'000'000), route);
  REQUIRE(flows.advance());
  CHECK(flows.finished() == std::vector<FlowId>{0});
  CHECK(flows.now() == FlowTime(3 * millisecond / 2));
  REQUIRE(flows.advance());
  CHECK(flows.finished() == std::vector<FlowId>{1});
  CHECK(flows.now() == FlowTime(2 * millisecond));
  CHECK_FALSE(flows.advance());
}

TEST_CASE("who learns of an end can start another flow at once") {
  FlowSimulation flows({Bandwidth(1e9)});
  const Route route{{0}};
  flows.start(FlowTime(0), Bytes(1'000'000), route);
  for (int i = 1; i < 4; ++i) {
    REQUIRE(flows.advance());
    CHECK(flows.now() == FlowTime(i * millisecond));
    flows.start(flows.now(), Bytes(1'000'000), route);
  }
}

TEST_CASE("an end is rounded up once") {
  FlowSimulation flows({Bandwidth(3e15)});  // three bytes in a femtosecond
  const Route route{{0}};
  flows.start(FlowTime(0), Bytes(7), route);
  REQUIRE(flows.advance());
  CHECK(flows.now() == FlowTime(3));
}

TEST_CASE("whole times stay whole") {
  for (const int ns : {1, 7, 300, 500, 1234, 4999}) {
    CHECK(round_up_to_flow_time(Seconds(ns * 1e-9)) == FlowTime(ns * (millisecond / 1'000'000)));
  }
}

TEST_CASE("what takes hours is refused") {
  FlowSimulation flows({Bandwidth(1)});
  const Route route{{0}};
  flows.start(FlowTime(0), Bytes(9000), route);  // 2.5 hours
  CHECK(flows.advance());
  flows.start(flows.now(), Bytes(9000), route);
  CHECK_THROWS_AS(flows.advance(), std::range_error);
  CHECK_THROWS_AS(round_up_to_flow_time(Seconds(1e4)), std::range_error);
}

}  // namespace
}  // namespace shardsim::network
