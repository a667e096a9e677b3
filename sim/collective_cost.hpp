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
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "hardware_profiles/machine.hpp"
#include "plan/plan.hpp"

namespace shardsim {

// Which links a collective loads; collectives with a level in common share it.
enum class LinkLevel : std::uint8_t { scale_up, scale_out, torus_x, torus_y, torus_z, network };

// A time together with its reasons: reports print the terms, tests compare them.
struct CostBreakdown {
  std::string algorithm;  // "ring in the node", "ring over 4 nodes, 8 NICs each", "ring on y", ...
  Seconds launch{0};
  Seconds latency{0};   // steps * latency of a step
  Seconds transfer{0};  // wire bytes over bandwidth
  std::vector<LinkLevel> links;

  [[nodiscard]] Seconds total() const { return launch + latency + transfer; }
};

// Where the axes of a plan's mesh lie on a machine. Build once per simulation.
//   cluster  device = position in the mesh, row-major; node = device / devices per node
//   torus    every mesh axis walks through spans of physical dimensions (assign_mesh)
//   network  device = position in the mesh, row-major
class Placement {
 public:
  // Throws InputError when the mesh does not fit the machine.
  Placement(const Mesh& mesh, const Machine& machine);
  // On a torus with an assignment of one's own: the spans of every mesh axis.
  Placement(const Mesh& mesh, const Machine& machine, std::vector<std::vector<TorusSpan>> spans);

  [[nodiscard]] const Mesh& mesh() const { return mesh_; }
  [[nodiscard]] const Machine& machine() const { return machine_; }
  // For tori: spans of every mesh axis.
  [[nodiscard]] const std::vector<std::vector<TorusSpan>>& spans() const { return spans_; }
  // Networks written in place; of others nothing.
  [[nodiscard]] const NetworkDescription* network() const {
    return std::get_if<NetworkDescription>(&machine_.profile.network);
  }

 private:
  Mesh mesh_;
  Machine machine_;
  std::vector<std::vector<TorusSpan>> spans_;
};

// Of networks that are simulated as flows (network_cost.hpp): classes of devices and links, or
// every device and link of its own, which takes longer and gives the same time.
enum class Folding : std::uint8_t { folded, unfolded };

// Of networks written in place.
struct NetworkOptions {
  Folding folding = Folding::folded;
  std::optional<std::string> algorithm;  // of those in network/algorithms.hpp; nothing: the default
  Place algorithm_place;                 // where errors about it point to
};

// What a link of such a network carries in a collective, and for which part of the time, if it
// carried that at its full bandwidth.
struct LinkLoad {
  NetworkLink link;
  Bytes bytes{0};
  double busy = 0;
};

class NetworkCosts;

// What collectives cost on a placement. What those have in common that differ in size alone is
// found once.
class CollectiveCosts {
 public:
  // The placement outlives it.
  explicit CollectiveCosts(const Placement& placement, NetworkOptions options = {});
  ~CollectiveCosts();
  CollectiveCosts(CollectiveCosts&&) noexcept;

  // The slowest of the groups. A group of one device costs nothing, not even a launch. Throws
  // InputError for a part of an axis that cuts a physical dimension where it cannot be cut.
  [[nodiscard]] CostBreakdown cost(const Collective& collective);

  // Of all links of a network written in place.
  [[nodiscard]] std::vector<LinkLoad> link_loads(const Collective& collective);

 private:
  [[nodiscard]] CostBreakdown cost_on_machine(const Collective& collective);

  const Placement& placement_;
  std::unique_ptr<NetworkCosts> network_;  // of a network written in place
};

// Of a single one.
[[nodiscard]] CostBreakdown collective_cost(const Placement& placement,
                                            const Collective& collective,
                                            Folding folding = Folding::folded);

// What whoever reads the cost must know of it; empty: nothing.
[[nodiscard]] std::string caveat_of(CollectiveKind kind, const CostBreakdown& cost);

// Every device with the next of its group, for a permute that names axes or groups but no pairs;
// else its pairs.
[[nodiscard]] std::vector<std::pair<std::int64_t, std::int64_t>> permute_pairs(
    const Mesh& mesh, const Collective& collective);

}  // namespace shardsim
