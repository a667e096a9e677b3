// Copies between a device and its host: 1 TB/s each way without latency unless said, a byte per
// picosecond (machines.hpp).
#include "sim/step/host_copy_cost.hpp"

#include <catch2/catch.hpp>

#include "machines.hpp"
#include "plan_builder.hpp"
#include "sim/step/simulate.hpp"

namespace shardsim::testing {
namespace {

Machine with_host_link(std::int64_t devices, double latency = 0) {
  Machine machine = round_node(devices);
  machine.profile.device.host_link = HostLinkProfile{link(1e12, latency)};
  return machine;
}

Result run(const PlanBuilder& builder, const Machine& machine) {
  return simulate(builder.plan, machine, {});
}

}  // namespace

TEST_CASE("devices on one link have their part of it each") {
  constexpr double latency = 3e-6;
  constexpr double efficiency = 0.5;
  Machine machine = with_host_link(2, latency);
  HostLinkProfile& host = *machine.profile.device.host_link;
  host.efficiency.value = efficiency;
  const Bytes bytes(MiB);
  const double alone =
      static_cast<double>(bytes.count()) / (host.bandwidth.value.count() * efficiency);
  const auto transfer_of = [&](std::int64_t devices) {
    return host_copy_cost(machine.profile, devices, bytes).transfer.count();
  };
  CHECK(transfer_of(2) == Approx(alone));
  CHECK(host_copy_cost(machine.profile, 2, bytes).latency == Seconds(latency));
  host.devices = Sourced<std::int64_t>{2, {}};
  CHECK(transfer_of(2) == Approx(2 * alone));
  CHECK(transfer_of(8) == Approx(2 * alone));
  CHECK(transfer_of(1) == Approx(alone));  // one that is there alone has all of it
}

// Inspur's measurement of two A100 on one bridge of PCIe 4, where the profile's efficiency is from:
// 22 GB/s of one alone, 11 of each of two at once.
TEST_CASE("two A100 on one bridge copy as they were measured") {
  constexpr double measured_alone = 22e9;
  constexpr double measured_together = 11e9;
  constexpr double as_printed = 0.01;  // two digits
  const Profile profile = load_profile("dgx-a100", {"test", ""});
  const Bytes bytes(256 * MiB);
  const auto copied = static_cast<double>(bytes.count());
  const auto rate_of = [&](std::int64_t devices) {
    return copied / host_copy_cost(profile, devices, bytes).transfer.count();
  };
  CHECK(rate_of(1) == Approx(measured_alone).epsilon(as_printed));
  CHECK(rate_of(2) == Approx(measured_together).epsilon(as_printed));
}

// jax-ml/scaling-book, tpus.md @04d8de5, question 6: 8 GB over the PCIe links of 8 chips, 15 GB/s
// each, take 66.7 ms (printed as 66). The profile has 0.87 of 16 GB/s, 7 % less than 15.
TEST_CASE("a host of v5e loads what the scaling book says") {
  constexpr std::int64_t chips = 8;
  constexpr std::int64_t loaded = 8'000'000'000;
  constexpr double rate_in_the_book = 15e9;
  constexpr double between_rates = 0.08;
  const double in_the_book = static_cast<double>(loaded) / chips / rate_in_the_book;
  const Profile profile = load_profile("tpu-v5e", {"test", ""});
  CHECK(host_copy_cost(profile, chips, Bytes(loaded / chips)).transfer.count() ==
        Approx(in_the_book).epsilon(between_rates));
}

TEST_CASE("copies there and back are at the same time, unless the link is for one at a time") {
  PlanBuilder b;
  b.host_copy(TaskKind::to_host, 300, {}, 1);
  b.host_copy(TaskKind::from_host, 200, {}, 2);
  Machine machine = with_host_link(2);
  CHECK(run(b, machine).step_time == SimTime(300));
  machine.profile.device.host_link->full_duplex = Sourced<bool>{false, {}};
  // Both at half pace until 400, what is left of the first alone.
  CHECK(run(b, machine).step_time == SimTime(500));
}

TEST_CASE("two copies one way share it, and each has its latency") {
  PlanBuilder b;
  b.host_copy(TaskKind::to_host, 100, {}, 1);
  b.host_copy(TaskKind::to_host, 100, {}, 2);
  CHECK(run(b, with_host_link(2, 50e-12)).step_time == SimTime(250));
}

// Of 4 TB/s of memory a copy takes a fourth, a kernel that only moves all: 1 + 1/4 together.
TEST_CASE("a copy takes of the memory what it reads there") {
  Machine machine = with_host_link(2);
  machine.profile.device.memory_bandwidth.value = Bandwidth(4e12);
  PlanBuilder b;
  b.plan.kernels.push_back({"move", KernelClass::memory, DType::bf16, Flops(0), Bytes(4'000'000)});
  b.kernel(0);
  b.plan.programs[0].tasks[0].work = 0;
  b.host_copy(TaskKind::to_host, 1'000'000);
  const double together = 1.25e6;  // ps, but for what is rounded up
  CHECK(static_cast<double>(run(b, machine).step_time.count()) == Approx(together).margin(3));
}

TEST_CASE("copies are rows of their own, whose time is exposed where nothing computes") {
  PlanBuilder b;
  const TaskId first = b.kernel(100);
  const TaskId out = b.host_copy(TaskKind::to_host, 150, {first}, 1);
  b.kernel(50, {first});
  b.host_copy(TaskKind::from_host, 40, {out}, 2);
  const Result result = run(b, with_host_link(2));
  // 100, then 150 of which 50 are hidden, then 40.
  CHECK(result.step_time == SimTime(290));
  CHECK(result.programs[0].exposed_time == SimTime(140));
  REQUIRE(result.communication.size() == 2);
  const CommunicationRow& there = result.communication[0];
  CHECK(there.kind == "to-host");
  CHECK(there.count == 1);
  CHECK(there.payload == Bytes(150));
  CHECK(there.wire_bytes_per_device == Bytes(0));
  CHECK(there.exposed == SimTime(100));
  CHECK(result.communication[1].kind == "from-host");
  CHECK(result.communication[1].exposed == SimTime(40));
}

}  // namespace shardsim::testing
