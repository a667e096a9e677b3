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
#include "hardware_profiles/network/machine_graph.hpp"
#include "plan/plan.hpp"
#include "sim/collectives/device_order.hpp"
#include "sim/collectives/memory_traffic.hpp"
#include "sim/collectives/told_algorithms.hpp"
#include "sim/network/link_history.hpp"

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

// Whose time a collective takes.
//   simulated      ours: on slices of TPUs of what XLA's compiler chooses, else of what is written
//                  beside the machine's formulas
//   uncalibrated   the same, not corrected by what machines alike have taken (calibrated_cost.hpp)
//   all_links      ours, and a torus uses all links that could help whatever the compiler chooses
//   tpu_scheduler  what the TPU compiler's scheduler reckons with (tpu/compiler_choice.hpp)
//   xla_sol        what XLA's GPU scheduler reckons with, at the speed of light (xla_sol.hpp)
//   flows          ours, of every message over the links that it crosses (network_cost.hpp): rings
//                  of the library, and along all dimensions of a slice
enum class CollectiveModel : std::uint8_t {
  simulated,
  uncalibrated,
  all_links,
  tpu_scheduler,
  xla_sol,
  flows
};
inline constexpr int collective_models = 6;
[[nodiscard]] std::string_view name_of(CollectiveModel model);  // "tpu-scheduler"

// Where the axes of a plan's mesh lie on a machine. Build once per simulation.
//   cluster, network  devices are numbered; node = device / devices per node
//   torus             every mesh axis walks through spans of physical dimensions
// Which device is at which position: device_order.hpp. An order that no digits of torus coordinates
// describe makes all collectives ones of listed groups, routed link by link. On several slices an
// axis has an outer part over slices, which device_order.hpp says, and an inner one in each.
class Placement {
 public:
  // Throws InputError when the mesh does not fit the machine, and for orders as
  // check_device_order does.
  Placement(const Mesh& mesh, const Machine& machine,
            CollectiveModel model = CollectiveModel::simulated, const DeviceOrder& order = {});
  // On a torus with an assignment of one's own: the spans of every mesh axis.
  Placement(const Mesh& mesh, const Machine& machine, std::vector<std::vector<TorusSpan>> spans,
            CollectiveModel model = CollectiveModel::simulated);

  // Of the devices; that of the plan where `order` moves none.
  [[nodiscard]] const Mesh& mesh() const { return numbers_.mesh(); }
  [[nodiscard]] const Mesh& plan_mesh() const { return numbers_.given(); }
  // A collective of the plan, in axes and positions of mesh().
  [[nodiscard]] Collective on_devices(const Collective& collective) const {
    return numbers_.numbered(collective);
  }
  [[nodiscard]] std::int64_t device(std::int64_t position) const {
    return numbers_.device(position);
  }
  [[nodiscard]] bool moves_devices() const { return !numbers_.is_given(); }

  [[nodiscard]] const Machine& machine() const { return machine_; }
  [[nodiscard]] CollectiveModel model() const { return model_; }
  // For tori: over how many slices every axis of mesh() goes, its outer part.
  [[nodiscard]] const std::vector<std::int64_t>& slices_along() const { return slices_along_; }
  // For tori: spans of every axis of mesh(); on several slices of its inner part.
  [[nodiscard]] const std::vector<std::vector<TorusSpan>>& spans() const { return spans_; }
  // Networks written in place; of others nothing.
  [[nodiscard]] const NetworkDescription* network() const {
    return std::get_if<NetworkDescription>(&machine_.profile.network);
  }

 private:
  void place_on_torus(const DeviceOrder& order);

  NumberedMesh numbers_;
  Machine machine_;
  std::vector<std::int64_t> slices_along_;
  std::vector<std::vector<TorusSpan>> spans_;
  CollectiveModel model_ = CollectiveModel::simulated;
};

// Of what is simulated as flows (network_cost.hpp): classes of devices and links, or
// every device and link of its own, which takes longer and gives the same time.
enum class Folding : std::uint8_t { folded, unfolded };

// What a link of a network carries in a collective, and for which part of the time, if it
// carried that at its full bandwidth.
struct LinkLoad {
  NetworkLink link;
  Bytes bytes{0};
  double busy = 0;
  std::size_t history = 0;  // in LinkLoads::histories
};

// Above so many classes of links they are not followed over time: a hundred megabytes of text.
inline constexpr std::size_t most_link_histories = std::size_t{1} << 14;

// Of all links of a machine, and what each carries over time: links that nothing tells apart have
// one history together. No histories where they are too many, or nothing is carried.
struct LinkLoads {
  std::vector<LinkLoad> links;
  Seconds bin{0};  // of histories
  std::vector<network::LinkHistory> histories;
};

struct CostOptions {
  Folding folding = Folding::folded;
  std::vector<ToldAlgorithm> told = {};
};

class ClusterCosts;
class NetworkCosts;
class SlicesCosts;

// What collectives cost on a placement. What those have in common that differ in size alone is
// found once.
class CollectiveCosts {
 public:
  // The placement outlives it. Throws InputError for algorithms that cannot be told.
  explicit CollectiveCosts(const Placement& placement, const CostOptions& options = {});
  ~CollectiveCosts();
  CollectiveCosts(CollectiveCosts&&) noexcept;

  // Of a collective of the plan, the slowest of its groups. A group of one device costs nothing,
  // not even a launch. Throws InputError for a part of an axis that cuts a physical dimension where
  // it cannot be cut, for an algorithm that cannot run, and where the placement's model knows
  // nothing of the machine or the collective.
  [[nodiscard]] CostBreakdown cost(const Collective& collective);

  // Of all links of the machine, and the time that the collective takes there: by flows, whatever
  // the placement's model.
  [[nodiscard]] LinkLoads link_loads(const Collective& collective);
  [[nodiscard]] CostBreakdown flow_cost(const Collective& collective);
  [[nodiscard]] const MachineGraph& graph();  // which the links are of
  // What no collective so far was there to be told: "all-reduce over data".
  [[nodiscard]] std::vector<std::string> unused_algorithms() const { return told_.unused(); }
  // What whoever reads costs by CollectiveModel::flows must know of the machine's graph; of other
  // models and networks written in place nothing.
  [[nodiscard]] std::vector<std::string> notes_on_flows();

  // Of such a network, by link: how long it is at work for those groups and pairs that have a
  // member among `devices` (empty: all). Nothing where links or messages are too many to be
  // followed one by one (network_cost.hpp).
  [[nodiscard]] std::optional<std::vector<Seconds>> link_times(
      const Collective& collective, const std::vector<std::int64_t>& devices);

 private:
  [[nodiscard]] CostBreakdown cost_on_devices(const Collective& collective, const Told& told);
  [[nodiscard]] CostBreakdown cost_on_machine(const Collective& collective, const Told& told);
  [[nodiscard]] NetworkCosts& flows();

  const Placement& placement_;
  Folding folding_;
  ToldAlgorithms told_;
  bool is_simulated_ = false;  // as flows
  // One of them at most; none of a torus.
  std::unique_ptr<ClusterCosts> cluster_;
  std::unique_ptr<SlicesCosts> slices_;
  std::unique_ptr<NetworkCosts> network_;  // when it is needed first
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
