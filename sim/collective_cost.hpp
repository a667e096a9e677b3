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
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "hardware_profiles/calibration.hpp"
#include "hardware_profiles/machine.hpp"
#include "plan/plan.hpp"
#include "sim/nccl/availability.hpp"

namespace shardsim {

// Which links a collective loads; collectives with a level in common share it.
enum class LinkLevel : std::uint8_t {
  scale_up,
  scale_out,
  torus_x,
  torus_y,
  torus_z,
  torus_chip,  // between the devices of a chip
  network,
};

// A time together with its reasons: reports print the terms, tests compare them.
struct CostBreakdown {
  // "ring in the node", "ring over 4 nodes, 8 NICs each", "ring on y", NCCL's "NVLSTree", ...
  std::string algorithm;
  std::string protocol;  // NCCL's, else empty
  Seconds launch{0};
  Seconds latency{0};   // steps * latency of a step
  Seconds transfer{0};  // wire bytes over bandwidth
  std::vector<LinkLevel> links;
  std::optional<CurveKey> curve;         // on clusters: what machines alike are compared by
  std::optional<Seconds> nccl_estimate;  // where NCCL runs: what it expects of its choice
  double factor = 1;  // measured over modelled time of machines alike: in all three terms

  [[nodiscard]] Seconds total() const { return launch + latency + transfer; }
};

// Whose time a collective takes.
//   simulated      ours: on slices of TPUs of what XLA's compiler chooses, else of what is written
//                  beside the machine's formulas
//   uncalibrated   the same, not corrected by what machines alike have taken (calibrated_cost.hpp)
//   all_links      ours, and a torus uses all links that could help whatever the compiler chooses
//   tpu_scheduler  what the TPU compiler's scheduler reckons with (tpu/compiler_choice.hpp)
//   xla_sol        what XLA's GPU scheduler reckons with, at the speed of light (xla_sol.hpp)
enum class CollectiveModel : std::uint8_t {
  simulated,
  uncalibrated,
  all_links,
  tpu_scheduler,
  xla_sol
};
inline constexpr int collective_models = 5;
[[nodiscard]] std::string_view name_of(CollectiveModel model);  // "tpu-scheduler"

// Where the axes of a plan's mesh lie on a machine. Build once per simulation.
//   cluster  device = position in the mesh, row-major; node = device / devices per node
//   torus    every mesh axis walks through spans of physical dimensions (assign_mesh)
//   network  device = position in the mesh, row-major
class Placement {
 public:
  // Throws InputError when the mesh does not fit the machine.
  Placement(const Mesh& mesh, const Machine& machine,
            CollectiveModel model = CollectiveModel::simulated);
  // On a torus with an assignment of one's own: the spans of every mesh axis.
  Placement(const Mesh& mesh, const Machine& machine, std::vector<std::vector<TorusSpan>> spans,
            CollectiveModel model = CollectiveModel::simulated);

  [[nodiscard]] const Mesh& mesh() const { return mesh_; }
  [[nodiscard]] const Machine& machine() const { return machine_; }
  [[nodiscard]] CollectiveModel model() const { return model_; }
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
  CollectiveModel model_ = CollectiveModel::simulated;
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

struct CostOptions {
  NetworkOptions network;
  nccl::Forced nccl;  // where NCCL runs: what it is told to take
};

class ClusterCosts;
class NetworkCosts;

// What collectives cost on a placement. What those have in common that differ in size alone is
// found once.
class CollectiveCosts {
 public:
  // The placement outlives it.
  explicit CollectiveCosts(const Placement& placement, const CostOptions& options = {});
  ~CollectiveCosts();
  CollectiveCosts(CollectiveCosts&&) noexcept;

  // The slowest of the groups. A group of one device costs nothing, not even a launch. Throws
  // InputError for a part of an axis that cuts a physical dimension where it cannot be cut, for an
  // algorithm that cannot run, and where the placement's model knows nothing of the machine or the
  // collective.
  [[nodiscard]] CostBreakdown cost(const Collective& collective);

  // Of all links of a network written in place.
  [[nodiscard]] std::vector<LinkLoad> link_loads(const Collective& collective);

 private:
  [[nodiscard]] CostBreakdown cost_on_machine(const Collective& collective);

  const Placement& placement_;
  // One of them, of a network written in place or a cluster; none of a torus.
  std::unique_ptr<NetworkCosts> network_;
  std::unique_ptr<ClusterCosts> cluster_;
};

// Of a single one.
[[nodiscard]] CostBreakdown collective_cost(const Placement& placement,
                                            const Collective& collective,
                                            const CostOptions& options = {});

// What whoever reads the cost must know of it; empty: nothing.
[[nodiscard]] std::string caveat_of(CollectiveKind kind, const CostBreakdown& cost);

// Every device with the next of its group, for a permute that names axes or groups but no pairs;
// else its pairs.
[[nodiscard]] std::vector<std::pair<std::int64_t, std::int64_t>> permute_pairs(
    const Mesh& mesh, const Collective& collective);

}  // namespace shardsim
