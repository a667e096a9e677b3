// What a collective takes on one machine, and what it consists of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "hardware_profiles/calibration.hpp"
#include "sim/collectives/memory_traffic.hpp"

namespace shardsim {

// Which links a collective, or a copy, loads.
enum class LinkLevel : std::uint8_t {
  scale_up,
  scale_out,
  torus_x,
  torus_y,
  torus_z,
  torus_chip,  // between the devices of a chip
  network,
  dcn,   // between slices
  host,  // from a device to its host
};
inline constexpr std::size_t link_levels = 9;

[[nodiscard]] std::string_view name_of(LinkLevel level);  // "scale-up", "x", "chip", "dcn"

// Out of a device and to it; on a torus up and down a dimension. Both where they are alike.
enum class LinkDirection : std::uint8_t { out, in, both };
[[nodiscard]] std::string_view name_of(LinkDirection direction);  // "out"

// How what corrects a cost differs from what it is: see calibrated_cost.hpp.
struct StandIn {
  bool other_algorithm = false;  // or collective
  std::int64_t nodes = 0;        // so many, all more or all fewer than its own; 0: as many
};

// What part of a level's bandwidth a collective takes while it transfers alone: what goes over it /
// (its rate * transfer). The level that bounds it has 1, and keeps it where the cost is corrected
// by a factor: what takes longer than the model is then the level's own (lines that are padded,
// flags, waiting for peers), and another collective finds no gaps in it that are known.
struct LinkUse {
  LinkLevel level = LinkLevel::scale_up;
  double out = 1;  // of a device; on a torus up the dimension
  double in = 1;   // to a device; on a torus down the dimension
};

// A time together with its reasons: reports print the terms, tests compare them.
struct CostBreakdown {
  // "ring in the node", "ring over 4 nodes, 8 NICs each", "ring on y", NCCL's "NVLSTree", ...
  std::string algorithm;
  std::string protocol;  // NCCL's, else empty
  Seconds launch{0};
  Seconds latency{0};   // steps * latency of a step
  Seconds transfer{0};  // wire bytes over bandwidth
  std::vector<LinkUse> links;
  std::optional<CurveKey> curve;         // on clusters: what machines alike are compared by
  std::optional<Seconds> nccl_estimate;  // where NCCL runs: what it expects of its choice
  StandIn stand_in;                      // where no such collective has been measured
  double factor = 1;     // measured over modelled time of machines alike: in all three terms
  MemoryTraffic memory;  // of a device, while it transfers; nothing: not known
  // On GPUs: each keeps a multiprocessor from other work, from start to end. 0: not known, or none.
  std::int64_t thread_blocks = 0;

  [[nodiscard]] Seconds total() const { return launch + latency + transfer; }
};

[[nodiscard]] std::vector<LinkLevel> levels_of(const CostBreakdown& cost);

}  // namespace shardsim
