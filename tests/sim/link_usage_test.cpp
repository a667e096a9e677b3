// What tasks take of links over time, against what can be worked out by hand: links of one byte per
// picosecond.
#include <catch2/catch.hpp>

#include "machines.hpp"
#include "plan_builder.hpp"
#include "sim/simulate.hpp"

namespace shardsim {
namespace {

using testing::link;
using testing::PlanBuilder;

SimulationOptions with_bins(std::size_t bins) {
  SimulationOptions options;
  options.link_bins = bins;
  return options;
}

void check_usage(const LinkUsage& usage, LinkLevel level, LinkDirection direction,
                 const std::vector<double>& taken) {
  CHECK(usage.level == level);
  CHECK(usage.direction == direction);
  CHECK_THAT(usage.taken, Catch::Matchers::Approx(taken).margin(1e-8));
}

}  // namespace

// The example of link_usage.hpp, 60 ps for its millisecond.
TEST_CASE("what is taken of links follows the pace of each task") {
  PlanBuilder b;
  const TaskId first = b.kernel(60);
  const TaskId later = b.kernel(60, {first});
  b.gather(150, {first}, 1);
  b.gather(30, {later}, 2);
  const Machine node = testing::round_node(2);
  const Result result = simulate(b.plan, node, with_bins(4));
  CHECK(result.step_time == SimTime(240));
  REQUIRE(result.programs[0].links.size() == 1);
  check_usage(result.programs[0].links[0], LinkLevel::scale_up, LinkDirection::both, {0, 1, 1, 1});
  const Result without = simulate(b.plan, node, {});
  CHECK(without.step_time == result.step_time);
  CHECK(without.programs[0].links.empty());
}

// As in contention_test.cpp: 4800 ps at full pace over the NICs, with a quarter of NVLink, and
// 100 ps of NVLink beside it, which make 4825.
TEST_CASE("a level that does not bound a collective has what goes over it taken") {
  const Machine machine = testing::cluster(4, 2, link(1e12, 0), link(0.125e12, 0));
  PlanBuilder b({{"nodes", 2}, {"x", 2}});
  b.gather(800, {}, 1);
  b.plan.collectives.back().axes = {b.plan.mesh.whole(0), b.plan.mesh.whole(1)};
  b.gather(100, {}, 2, /*axis=*/1);
  const Result result = simulate(b.plan, machine, with_bins(1));
  REQUIRE(result.programs[0].links.size() == 2);
  check_usage(result.programs[0].links[0], LinkLevel::scale_up, LinkDirection::both,
              {(4800 / 4.0 + 100) / 4825});
  check_usage(result.programs[0].links[1], LinkLevel::scale_out, LinkDirection::both,
              {4800 / 4825.0});
}

TEST_CASE("a launch takes nothing of links, a message goes out at one end and in at the other") {
  Machine node = testing::cluster(2, 2, link(1e12, 100e-12), link(1e12, 0));
  PlanBuilder b;
  b.plan.programs[0].devices = {0};
  b.transfer(/*sends=*/true, 1, 100);
  b.add_program("second", {1});
  b.current = 1;
  b.transfer(/*sends=*/false, 0, 100);
  const Result result = simulate(b.plan, node, with_bins(2));
  CHECK(result.step_time == SimTime(200));
  REQUIRE(result.programs[0].links.size() == 1);
  REQUIRE(result.programs[1].links.size() == 1);
  check_usage(result.programs[0].links[0], LinkLevel::scale_up, LinkDirection::out, {0, 1});
  check_usage(result.programs[1].links[0], LinkLevel::scale_up, LinkDirection::in, {0, 1});
}

TEST_CASE("of networks written in place no levels are told") {
  const Profile profile = load_profile("ring(bandwidth=1TB/s,latency=0s,device=h100)", {});
  PlanBuilder b;
  b.gather(1000);
  const Machine ring = make_machine(profile, 2, std::nullopt, {});
  CHECK(simulate(b.plan, ring, with_bins(2)).programs[0].links.empty());
}

}  // namespace shardsim
