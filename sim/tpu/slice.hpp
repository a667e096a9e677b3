// A slice of TPUs as XLA's TPU compiler sees it: a generation, a grid of chips, which of its
// dimensions are closed to rings, and how many devices a chip is.
//
//   Slice s = *slice_of(make_machine(load_profile("tpu-v5e", place), 256, std::nullopt, place));
//   s.sizes == {16, 16, 1}, s.wraps == {true, true, false}, s.limited_routing()
//
// Constants of a generation, printed by libtpu 0.0.51's latency-hiding scheduler for abstract
// topologies (2026-10), jax 0.10.2:
//
//   generation  clock     bytes per cycle and link direction   that is
//   v4          1050 MHz  42.666775                            44.80 GB/s
//   v5e         1500 MHz  31.100018                            46.65 GB/s
//   v5p, v6e    1750 MHz  53.342711                            93.35 GB/s
//   tpu7x       as v5p, assumed: none was compiled for; Google sells both with 1200 GB/s per chip,
//               of six links both ways
//
// Of v2 and v3 nothing is known.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/units.hpp"
#include "hardware_profiles/machine.hpp"

namespace shardsim::tpu {

enum class Generation : std::uint8_t { v4, v5e, v5p, v6e, tpu7x };

inline constexpr std::size_t dimensions = 3;

struct Slice {
  Generation generation = Generation::v5p;
  std::array<std::int64_t, dimensions> sizes{1, 1, 1};  // chips, 1 where there is no dimension
  std::array<bool, dimensions> wraps{};
  std::int64_t devices_per_chip = 1;  // v4: 1 with "megacore", else 2

  [[nodiscard]] std::int64_t chips() const { return sizes[0] * sizes[1] * sizes[2]; }
  // A ring goes round the dimension over neighbours only.
  [[nodiscard]] bool closed(std::size_t dimension) const {
    return wraps.at(dimension) || sizes.at(dimension) == 2;
  }
  // v5e and v6e: chips with four links in a plane. The others have six.
  [[nodiscard]] bool flat() const;
  // v5e beyond 16 chips: messages take table-driven routes ("limited ICI routing"), which rules
  // out whatever needs links to be addressed by direction.
  [[nodiscard]] bool limited_routing() const;
};

// By the profile's device. Nothing for other machines and for generations not known.
[[nodiscard]] std::optional<Slice> slice_of(const Machine& machine);

// Of the scheduler's cost model.
struct Clock {
  double hertz = 0;
  double link_bytes_per_cycle = 0;  // one link, one direction
};
[[nodiscard]] Clock clock_of(Generation generation);

}  // namespace shardsim::tpu
