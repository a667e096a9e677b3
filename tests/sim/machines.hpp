// Machines with round numbers, made by hand so that expectations can be worked out beside tests.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "hardware_profiles/machine.hpp"

namespace shardsim::testing {

inline LinkProfile link(double bytes_per_second, double latency_seconds) {
  LinkProfile profile;
  profile.bandwidth.value = Bandwidth(bytes_per_second);
  profile.efficiency.value = 1;
  profile.latency.value = Seconds(latency_seconds);
  return profile;
}

// 1 TFLOP/s in bf16, 1 TB/s, nothing lost: one flop or one byte per picosecond.
inline DeviceProfile round_device() {
  DeviceProfile device;
  device.name = "round";
  device.memory_capacity.value = Bytes(1000);
  device.memory_bandwidth.value = Bandwidth(1e12);
  device.peak[DType::bf16].value = FlopRate(1e12);
  device.matmul_efficiency.value = 1;
  device.attention_efficiency.value = 1;
  device.memory_efficiency.value = 1;
  return device;
}

// For plans whose kernels compute (plan_builder.hpp): nothing waits for memory.
inline DeviceProfile device_of_plans() {
  DeviceProfile device = round_device();
  device.memory_bandwidth.value = Bandwidth(1e18);
  return device;
}

inline Machine cluster(std::int64_t devices, std::int64_t devices_per_node, LinkProfile scale_up,
                       LinkProfile scale_out) {
  ClusterProfile network;
  network.devices_per_node.value = devices_per_node;
  network.scale_up = {std::move(scale_up), {Fabric::nvswitch, {}}};
  network.scale_out = {std::move(scale_out), {devices_per_node, {}}, {}};
  Machine machine;
  machine.profile.name = "hand-made";
  machine.profile.device = device_of_plans();
  machine.profile.network = network;
  machine.devices = devices;
  machine.nodes = ceil_div(devices, devices_per_node);
  return machine;
}

// Links of 1 TB/s without latency: one byte per picosecond.
inline Machine round_node(std::int64_t devices) {
  return cluster(devices, devices, link(1e12, 0), link(1e12, 0));
}

inline Machine torus(std::vector<std::int64_t> sizes, std::vector<bool> wraps, LinkProfile each) {
  TorusProfile network;
  network.dimensions = static_cast<int>(sizes.size());
  network.link = std::move(each);
  Machine machine;
  machine.profile.name = "hand-made";
  machine.profile.device = device_of_plans();
  machine.profile.network = network;
  for (std::int64_t size : sizes) machine.devices *= size;
  machine.torus = TorusShape{std::move(sizes), std::move(wraps)};
  return machine;
}

}  // namespace shardsim::testing
