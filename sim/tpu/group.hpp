// What the TPU compiler asks of a group of devices before it chooses an algorithm.
//
//   box         a product of sets of coordinates, one set for every dimension and for the cores
//   dimensions  those along which the group has more than one coordinate
//   whole       it has all coordinates of those dimensions, and all cores of its chips
//   closed      each of them wraps or has two chips: a ring needs no longer way back
//   in order    ranks count the coordinates up, x slowest, then y, z, and the cores fastest
//
// Example: v5p 4x4x4 without wraparound, the planes of x and y. Each is a box, whole, in order and
// not closed; walked to and fro (0,0) (0,1) .. (0,3) (1,3) (1,2) .. it is not in order either.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/tpu/slice.hpp"

namespace shardsim::tpu {

struct Coordinates {
  std::array<std::int64_t, dimensions> chip{};
  std::int64_t core = 0;
  friend bool operator==(const Coordinates&, const Coordinates&) = default;
};

struct Group {
  std::int64_t members = 1;
  std::vector<std::size_t> dimensions;
  std::int64_t cores = 1;  // of a chip, that take part
  bool box = true;
  bool whole_dimensions = false;  // a box, with all coordinates of its dimensions
  bool whole = false;             // and with all cores
  bool closed = false;
  bool in_order = false;

  // All chips of two dimensions, one core of each or all; a ring of rings.
  [[nodiscard]] bool is_closed_plane() const;
};

// `devices` in rank order, at least one.
[[nodiscard]] Group describe(const Slice& slice, const std::vector<Coordinates>& devices);

// All pairs are one distance apart along one dimension each, the shorter way round where it wraps.
[[nodiscard]] bool is_uniform_shift(const Slice& slice,
                                    const std::vector<std::pair<Coordinates, Coordinates>>& pairs);

}  // namespace shardsim::tpu
