// Closed-form cost of one collective on one group: the alpha-beta model.
//
//   time = launch + steps * latency + wire_bytes / bandwidth
//
// Example: all-reduce of 64 MiB over 8 devices of one node, ring, latency 2 us, 370 GB/s.
//   steps      = 2 * (8 - 1)               = 14
//   wire_bytes = 2 * (8 - 1) / 8 * 64 MiB  = 112 MiB
//   time       = launch + 28 us + 317 us
//
// Derivation and limits of validity: docs/cost-model.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "hardware_profiles/machine.hpp"
#include "plan/plan.hpp"

namespace shardsim {

// Which links a collective loads; collectives with a level in common share it.
enum class LinkLevel : std::uint8_t { scale_up, scale_out, torus_x, torus_y, torus_z };

// A time together with its reasons: reports print the terms, tests compare them.
struct CostBreakdown {
  std::string algorithm;  // "ring", "ring within nodes + ring across nodes", "ring on y", ...
  Seconds launch{0};
  Seconds latency{0};   // steps * latency of a step
  Seconds transfer{0};  // wire bytes over bandwidth
  std::vector<LinkLevel> links;

  [[nodiscard]] Seconds total() const { return launch + latency + transfer; }
};

// Where the axes of a plan's mesh lie on a machine. Build once per simulation.
class Placement {
 public:
  // Throws InputError when the mesh does not fit the machine.
  Placement(const Mesh& mesh, const Machine& machine);

  [[nodiscard]] const Mesh& mesh() const { return mesh_; }
  [[nodiscard]] const Machine& machine() const { return machine_; }
  // For tori: spans of every mesh axis.
  [[nodiscard]] const std::vector<std::vector<TorusSpan>>& spans() const { return spans_; }

 private:
  Mesh mesh_;
  Machine machine_;
  std::vector<std::vector<TorusSpan>> spans_;
};

[[nodiscard]] CostBreakdown collective_cost(const Placement& placement, const Collective& collective);
[[nodiscard]] Seconds kernel_cost(const DeviceProfile& device, const Kernel& kernel);

}  // namespace shardsim
