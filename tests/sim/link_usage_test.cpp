// What tasks take of links over time, against what can be worked out by hand: links of one byte per
// picosecond.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "machines.hpp"
#include "plan_builder.hpp"
#include "sim/step/link_usage.hpp"
#include "sim/step/simulate.hpp"

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

TEST_CASE("what goes out and what comes in at other times are told apart") {
  PlanBuilder b;
  b.plan.programs[0].devices = {0};
  b.add_program("second", {1});
  for (const std::size_t sender : {0, 1}) {
    for (const std::size_t program : {sender, 1 - sender}) {
      b.current = program;
      b.transfer(program == sender, static_cast<int>(1 - program), 100);
    }
  }
  const Result result = simulate(b.plan, testing::round_node(2), with_bins(2));
  CHECK(result.step_time == SimTime(200));
  for (const std::size_t program : {0, 1}) {
    const std::vector<LinkUsage>& links = result.programs[program].links;
    REQUIRE(links.size() == 2);
    const std::vector<double> first = {1, 0};
    const std::vector<double> second = {0, 1};
    check_usage(links[0], LinkLevel::scale_up, LinkDirection::out, program == 0 ? first : second);
    check_usage(links[1], LinkLevel::scale_up, LinkDirection::in, program == 0 ? second : first);
  }
}

// An all-gather over a torus of 4 x 4 goes round a ring both ways, so that all links of its axis
// are busy to the end.
TEST_CASE("of networks written in place the busiest links are told, by name") {
  const Machine torus = make_machine(
      load_profile("torus(4x4,bandwidth=1TB/s,latency=0s,device=h100)", {}), 16, std::nullopt, {});
  PlanBuilder b({{"x", 4}, {"y", 4}});
  const TaskId first = b.gather(1000, {}, 1, /*axis=*/1);
  b.gather(3000, {first}, 1, /*axis=*/0);
  const Result result = simulate(b.plan, torus, with_bins(4));
  const std::vector<LinkUsage>& links = result.programs[0].links;
  REQUIRE(links.size() == 2);
  check_usage(links[0], LinkLevel::network, LinkDirection::out, {0, 1, 1, 1});
  check_usage(links[1], LinkLevel::network, LinkDirection::out, {1, 0, 0, 0});
  CHECK(links[0].link == "device 0 -> device 4");
  CHECK(links[1].link == "device 0 -> device 1");
  // Two directions of 16 links in each axis.
  CHECK(links[0].links == 32);
  CHECK(links[1].links == 32);
  CHECK(simulate(b.plan, torus, {}).step_time == result.step_time);
}

TEST_CASE("programs are told of the links that they are on") {
  const Machine ring = make_machine(
      load_profile("ring(8,bandwidth=1TB/s,latency=0s,device=h100)", {}), 8, std::nullopt, {});
  PlanBuilder b({{"x", 8}});
  b.plan.programs[0].devices = {0};
  b.add_program("second", {2});
  b.transfer(/*sends=*/true, 1, 100);
  b.current = 1;
  b.transfer(/*sends=*/false, 0, 100);
  const Result result = simulate(b.plan, ring, with_bins(1));
  for (const ProgramResult& program : result.programs) {
    REQUIRE(program.links.size() == 1);
    check_usage(program.links[0], LinkLevel::network, LinkDirection::out, {1});
    CHECK(program.links[0].link == "device 0 -> device 1");
    CHECK(program.links[0].links == 2);  // and from 1 to 2
  }
}

// Device 0 sends to each of the next eleven along a ring of 24: the nearer a link, the more it has.
TEST_CASE("of many links the busiest come first, eight of them") {
  const Machine chain = make_machine(
      load_profile("ring(24,bandwidth=1TB/s,latency=0s,device=h100)", {}), 24, std::nullopt, {});
  PlanBuilder b({{"x", 24}});
  b.plan.programs[0].devices = {0};
  for (std::int64_t k = 1; k < 12; ++k) b.add_program(std::to_string(k), {k});
  for (int k = 1; k < 12; ++k) {
    b.current = 0;
    b.transfer(/*sends=*/true, k, 100);
    b.current = static_cast<std::size_t>(k);
    b.transfer(/*sends=*/false, 0, 100);
  }
  const Result result = simulate(b.plan, chain, with_bins(1));
  // From 0 to k over k links: the first carries all.
  const std::vector<LinkUsage>& links = result.programs[0].links;
  REQUIRE(links.size() == busiest_links);
  for (std::size_t i = 0; i < links.size(); ++i) {
    CHECK(links[i].link == fmt::format("device {} -> device {}", i, i + 1));
    CHECK(links[i].links == 1);
    if (i > 0) CHECK(links[i].taken[0] < links[i - 1].taken[0]);
  }
}

}  // namespace shardsim
