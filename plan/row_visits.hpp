// Rows of an all-to-all that visit some of the places on its devices: tokens and experts.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/units.hpp"

namespace shardsim {

// Whose kernels send the rows.
enum class RowKernels : std::uint8_t { deepep, hybridep };
[[nodiscard]] std::string_view name_of(RowKernels kernels);

// A row goes once to each node that has some of what it visits, and from there to each device that
// has (DeepEP's and HybridEP's kernels, csrc/kernels/internode.cu); the way back is the same, sums
// being made in the node before. The payload has a row once for each device.
struct RowVisits {
  std::int64_t places = 0;           // dealt out evenly over the group
  std::int64_t visited = 0;          // by one row, none favoured
  std::int32_t multiprocessors = 0;  // that are at work on it, at least one
  RowKernels kernels = RowKernels::deepep;
  bool combines = false;  // rows go back, where those of a token are added up
  Bytes row{0};           // of one of them
  friend bool operator==(const RowVisits&, const RowVisits&) = default;
};

// Copies of a row where each of so many parts, devices or nodes, gets one that has some of what it
// visits.
[[nodiscard]] double copies_by_part(std::int64_t places, std::int64_t visited, std::int64_t parts);

}  // namespace shardsim
