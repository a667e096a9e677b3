#include "sim/tpu/slice.hpp"

#include <string_view>

namespace shardsim::tpu {
namespace {

// Printed by the compiler (the table in the header).
constexpr Clock clock_of_v4{1050e6, 42.666775};
constexpr Clock clock_of_v5e{1500e6, 31.100018};
constexpr Clock clock_of_v5p{1750e6, 53.342711};

constexpr std::int64_t most_chips_routed_freely = 16;  // of v5e

struct GenerationName {
  std::string_view device;  // how the profile's begins
  Generation generation;
};
constexpr std::array generation_names = {
    GenerationName{"TPU v4", Generation::v4},   GenerationName{"TPU v5e", Generation::v5e},
    GenerationName{"TPU v5p", Generation::v5p}, GenerationName{"TPU v6e", Generation::v6e},
    GenerationName{"TPU7x", Generation::tpu7x},
};

}  // namespace

bool Slice::flat() const { return generation == Generation::v5e || generation == Generation::v6e; }

bool Slice::limited_routing() const {
  return generation == Generation::v5e && chips() > most_chips_routed_freely;
}

std::optional<Slice> slice_of(const Machine& machine) {
  if (!machine.torus || machine.slices > 1) return std::nullopt;
  for (const GenerationName& name : generation_names) {
    if (!machine.profile.device.name.starts_with(name.device)) continue;
    Slice slice;
    slice.generation = name.generation;
    slice.devices_per_chip = machine.torus->devices_per_chip;
    for (std::size_t i = 0; i < machine.torus->sizes.size(); ++i) {
      slice.sizes.at(i) = machine.torus->sizes[i];
      slice.wraps.at(i) = machine.torus->wraps[i];
    }
    return slice;
  }
  return std::nullopt;
}

Clock clock_of(Generation generation) {
  switch (generation) {
    case Generation::v4:
      return clock_of_v4;
    case Generation::v5e:
      return clock_of_v5e;
    case Generation::v5p:
    case Generation::v6e:
    case Generation::tpu7x:
      break;
  }
  return clock_of_v5p;
}

}  // namespace shardsim::tpu
