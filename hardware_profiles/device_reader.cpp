#include "hardware_profiles/device_reader.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <string>

#include "base/stacks.hpp"
#include "hardware_profiles/sourced_reader.hpp"

namespace shardsim {
namespace {

// By dtype.
template <class Value, class Read>
std::map<DType, Value> read_by_dtype(const JsonReader& reader, Read read) {
  std::map<DType, Value> all;
  for (const auto& [name, value] : reader.members()) {
    const std::optional<DType> dtype = parse_dtype(name);
    if (!dtype) {
      reader.fail(fmt::format("unknown dtype \"{}\", expected for example \"bf16\"", name));
    }
    if (!all.emplace(*dtype, read(value)).second) {
      reader.fail(fmt::format("dtype {} is given twice", name_of(*dtype)));
    }
  }
  return all;
}

EfficiencySurface read_surface(const JsonReader& reader) {
  reader.only_keys({"efficiency", "depth", "side", "overhead"});
  const auto read_size = [](const JsonReader& value) {
    const double size = value.number();
    if (!(size >= 0 && std::isfinite(size))) value.fail("must be at least 0");
    return size;
  };
  EfficiencySurface surface{read_sourced(reader.at("efficiency"), read_fraction)};
  if (const auto depth = reader.find("depth")) surface.depth = read_sourced(*depth, read_size);
  if (const auto side = reader.find("side")) surface.side = read_sourced(*side, read_size);
  if (const auto overhead = reader.find("overhead")) {
    surface.overhead = read_sourced(*overhead, read_seconds);
  }
  return surface;
}

HostLinkProfile read_host_link(const JsonReader& reader) {
  reader.only_keys({"bandwidth", "efficiency", "latency", "devices", "full_duplex"});
  HostLinkProfile link{read_link(reader)};
  if (const auto devices = reader.find("devices")) {
    link.devices = read_sourced(*devices, read_count);
  }
  if (const auto duplex = reader.find("full_duplex")) {
    link.full_duplex = read_sourced(*duplex, read_flag);
  }
  return link;
}

double read_at_least_one(const JsonReader& json) {
  const double value = json.number();
  if (value < 1) json.fail("must be at least 1");
  return value;
}

PowerProfile read_power_profile(const JsonReader& reader) {
  reader.only_keys({"limit", "idle", "per_flop", "moving", "spread"});
  const JsonReader limit = reader.at("limit");
  PowerProfile power{read_sourced(limit, read_power), read_sourced(reader.at("idle"), read_power),
                     read_by_dtype<Sourced<Energy>>(reader.at("per_flop"),
                                                    [](const JsonReader& energy) {
                                                      return read_sourced(energy, read_energy);
                                                    }),
                     read_sourced(reader.at("moving"), read_power)};
  if (const auto spread = reader.find("spread"))
    power.spread = read_sourced(*spread, read_fraction);
  if (power.idle.value >= power.limit.value) limit.fail("must be more than \"idle\"");
  return power;
}

// By the stacks that the object names.
template <class Value, class Read>
std::map<std::string, Sourced<Value>> read_by_stack(const JsonReader& reader, Read read_value) {
  reader.only_keys(stacks());
  std::map<std::string, Sourced<Value>> values;
  for (const auto& [stack, value] : reader.members()) {
    values[stack] = read_sourced(value, read_value);
  }
  return values;
}

void read_surfaces(const JsonReader& surfaces, DeviceProfile& device) {
  surfaces.only_keys({"matmul", "attention", "attention_backward"});
  const auto read_of = [&](const char* kernel_class) {
    const auto found = surfaces.find(kernel_class);
    if (!found) return EfficiencySurfaces{};
    return read_by_dtype<EfficiencySurface>(*found, read_surface);
  };
  device.matmul_surfaces = read_of("matmul");
  device.attention_surfaces = read_of("attention");
  device.attention_backward_surfaces = read_of("attention_backward");
}

}  // namespace

DeviceProfile read_device(const JsonReader& reader) {
  reader.only_keys({"name", "memory_capacity", "memory_bandwidth", "peak", "matmul_efficiency",
                    "attention_efficiency", "memory_efficiency", "surfaces", "kernel_launch",
                    "host_launch", "workspaces", "sms", "sms_per_block", "matrix_unit", "host_link",
                    "host_memory", "kernels", "power", "power_limit"});
  DeviceProfile device;
  device.name = read_text(reader.at("name"));
  device.memory_capacity = read_sourced(reader.at("memory_capacity"), read_bytes);
  device.memory_bandwidth = read_sourced(reader.at("memory_bandwidth"), read_bandwidth);
  const JsonReader peak = reader.at("peak");
  device.peak = read_by_dtype<Sourced<FlopRate>>(
      peak, [](const JsonReader& rate) { return read_sourced(rate, read_flop_rate); });
  if (device.peak.empty()) peak.fail("is empty, expected at least one dtype");
  device.matmul_efficiency = read_sourced(reader.at("matmul_efficiency"), read_fraction);
  device.attention_efficiency = read_sourced(reader.at("attention_efficiency"), read_fraction);
  device.memory_efficiency = read_sourced(reader.at("memory_efficiency"), read_fraction);
  if (const auto surfaces = reader.find("surfaces")) read_surfaces(*surfaces, device);
  device.kernel_launch = read_sourced(reader.at("kernel_launch"), read_seconds);
  if (const auto launch = reader.find("host_launch")) {
    device.host_launch = read_by_stack<Seconds>(*launch, read_seconds);
  }
  if (const auto workspaces = reader.find("workspaces")) {
    device.workspaces = read_by_stack<Bytes>(*workspaces, read_bytes);
  }
  if (const auto sms = reader.find("sms")) device.sms = read_sourced(*sms, read_count);
  if (const auto lost = reader.find("sms_per_block")) {
    device.sms_per_block = read_sourced(*lost, read_at_least_one);
  }
  if (const auto unit = reader.find("matrix_unit")) {
    device.matrix_unit = read_sourced(*unit, read_count);
  }
  if (const auto link = reader.find("host_link")) device.host_link = read_host_link(*link);
  if (const auto memory = reader.find("host_memory")) {
    memory->only_keys({"bandwidth", "efficiency", "capacity"});
    device.host_memory = {read_sourced(memory->at("bandwidth"), read_bandwidth),
                          read_sourced(memory->at("efficiency"), read_fraction)};
    if (const auto capacity = memory->find("capacity")) {
      device.host_memory->capacity = read_sourced(*capacity, read_bytes);
    }
  }
  if (const auto kernels = reader.find("kernels")) device.kernels = load_kernel_data(*kernels);
  if (const auto power = reader.find("power")) device.power = read_power_profile(*power);
  if (const auto limit = reader.find("power_limit")) {
    device.power_limit = read_sourced(*limit, read_power);
    if (device.power && device.power_limit->value <= device.power->idle.value) {
      limit->fail("must be more than what the device draws idle");
    }
  }
  return device;
}

}  // namespace shardsim
