// Copies between a device and its host: 1 TB/s each way without latency unless said, a byte per
// picosecond (machines.hpp).
#include "sim/host_copy_cost.hpp"

#include <catch2/catch.hpp>

#include "machines.hpp"
#include "plan_builder.hpp"
#include "sim/simulate.hpp"

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

// 256 MiB of each of two are 512 MiB over 31.5 GB/s x 0.87: 19.6 ms.
TEST_CASE("devices on one link have their part of it each") {
  Machine machine = with_host_link(2, 3e-6);
  HostLinkProfile& host = *machine.profile.device.host_link;
  host.bandwidth.value = Bandwidth(31.5e9);
  host.efficiency.value = 0.87;
  const double alone = 268435456 / (31.5e9 * 0.87);
  const Bytes bytes(256 * MiB);
  CHECK(host_copy_cost(machine, bytes).transfer.count() == Approx(alone));
  CHECK(host_copy_cost(machine, bytes).latency == Seconds(3e-6));
  host.devices = Sourced<std::int64_t>{2, {}};
  CHECK(host_copy_cost(machine, bytes).transfer.count() == Approx(2 * alone));
  CHECK(host_copy_cost(machine, bytes).transfer.count() == Approx(19.6e-3).epsilon(1e-3));
  // One that is there alone has all of it.
  machine.devices = 1;
  CHECK(host_copy_cost(machine, bytes).transfer.count() == Approx(alone));
}

// jax-ml/scaling-book, tpus.md @04d8de5, question 6: 8 GB over the PCIe links of 8 chips, 15 GB/s
// each, in 66 ms. The profile has 0.87 of 16 GB/s, 7 % less.
TEST_CASE("a host of v5e loads what the scaling book says") {
  const Machine machine =
      make_machine(load_profile("tpu-v5e", {"test", ""}), 8, std::nullopt, {"test", ""});
  const HostCopyCost cost = host_copy_cost(machine, Bytes(1'000'000'000));
  CHECK(cost.transfer.count() == Approx(1e9 / 15e9).epsilon(0.08));
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
