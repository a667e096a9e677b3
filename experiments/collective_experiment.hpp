// One collective on one group of one machine, over sizes; what was measured beside it.
//
//   { "machine": "dgx-h100", "kind": "all-reduce", "devices": 16, "sizes": "1KiB:8GiB:x2" }
//   { "against": "examples/collectives/h100-dgx-8-all-reduce.json" }
//
//   kind       all-reduce, all-gather, reduce-scatter, all-to-all, collective-permute, broadcast
//   devices    of the group: from 2 to 2^20; all of the slice that "topology" names, when left out
//   nodes      over which they lie evenly; what they fill, when left out
//   sizes      size_sweep.hpp; payloads as plan/plan.hpp has them, nccl-tests' sizes
//   topology   of a torus: the slice, as make_machine chooses it when left out
//   slices     of TPUs, over which the devices lie evenly; 1, when left out
//   model      "simulated", the default; "uncalibrated", "all-links", "tpu-scheduler", "xla-sol" or
//              "flows": whose time is predicted (CollectiveModel)
//   links      true: what every link carries, for the last size; on machines that formulas price,
//              as the model "flows" has it
//   unfold     true: every device and link of its own; where collectives are simulated, which is
//              on networks written in place, on graphs, and by the model "flows"
//   algorithm  where they are simulated: one of sim/network/algorithms/by_name.hpp; else,
//              where NCCL runs, what it is told to take, as NCCL_ALGO; it chooses, when left out
//   protocol   NCCL's, as NCCL_PROTO
//   against    a measured table (measured_tables.hpp): it says everything but the topology
//
// Beside "against", "machine" is laid over the file's; "kind", "devices" and "nodes" say what the
// file leaves open and may not contradict it, and which of several tables is meant; the sizes are
// the file's.
//
// "calibration" stands in place of the machine's: a shipped one's name, a path that ends in .json,
// relative to the file, or one in place; or a list of these (hardware_profiles/calibration.hpp).
//
// A table that names NCCL's algorithm or protocol is predicted with them. Where NCCL runs, its own
// estimate (sim/nccl/selection.hpp) stands beside the prediction.
//
// On a slice of TPUs what XLA's TPU compiler makes of the collective stands there, with what its
// scheduler reckons with (sim/tpu/compiler_choice.hpp); the prediction follows the choice.
//
// The group is alone on the machine. With every device of k nodes, or with part of one node, it is
// the machine; where it takes 4 of 8 devices of each of k nodes, it is the first 4 of each, and the
// machine has all 8 k. A permute sends to the next device of the group, the last to the first, as
// nccl-tests' sendrecv does. On a torus the group is the slice, in the order in which an only mesh
// axis lies on it. Where the slice is named the group may be part of it: an axis of a mesh over the
// slice, or one device of each chip, and the others have groups of their own at the same time. On a
// network written in place it is all devices.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "experiments/link_view.hpp"
#include "measurements/collective_measurement.hpp"
#include "measurements/error_summary.hpp"
#include "sim/collectives/collective_cost.hpp"
#include "sim/nccl/selection.hpp"
#include "sim/tpu/compiler_choice.hpp"

namespace shardsim {

struct CollectiveExperiment {
  std::string machine;
  std::optional<std::string> topology;
  std::int64_t slices = 1;
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::int64_t devices = 2;
  std::optional<std::int64_t> nodes;
  std::vector<Bytes> sizes;
  CostOptions options;  // what a measured table names is added to it where it is priced
  bool with_links = false;
  CollectiveModel model = {};
  std::optional<std::vector<Calibration>> calibrations;  // instead of the machine's
  std::optional<CollectiveMeasurement> measured;         // its rows are the sizes
  Place machine_place;                                   // where errors about them point to
  Place topology_place;
  Place slices_place;
  Place devices_place;
  Place nodes_place;
  Place sizes_place;
};

// Throws InputError with a suggestion.
[[nodiscard]] CollectiveModel read_collective_model(const JsonReader& json);

// How many devices the slice of a torus has that goes by this name. Throws InputError: no torus, no
// shape, a slice of one device.
[[nodiscard]] std::int64_t devices_of_slice(const std::string& machine, const std::string& topology,
                                            const Place& machine_place,
                                            const Place& topology_place);

// Paths in the document are relative to `file`. Reads the measurement. Throws InputError.
[[nodiscard]] CollectiveExperiment read_collective(const Json& document, const std::string& file);

// Of a table that names one: a shipped profile, or the path of a file, which the table says
// relative to its own.
[[nodiscard]] std::string machine_of(const CollectiveMeasurement& measurement);

// What a table tells, on the machine that it names if none is given. Throws InputError for what it
// leaves open.
[[nodiscard]] CollectiveExperiment experiment_of(const CollectiveMeasurement& measurement,
                                                 const std::optional<std::string>& machine);

struct CollectivePoint {
  Bytes bytes{0};
  CostBreakdown cost;
  std::optional<tpu::Choice> tpu;  // what the TPU compiler chooses, on a slice
  std::optional<Seconds> measured;

  // Predicted over measured, less 1: 0.1 is a tenth too slow.
  [[nodiscard]] std::optional<double> relative_error() const;
};

struct CollectivePrediction {
  CollectiveExperiment experiment;
  Machine machine;
  std::int64_t nodes = 1;  // that the group lies on; 1 on a torus
  std::vector<CollectivePoint> points;
  std::optional<ErrorSummary> errors;  // if anything was measured
  std::optional<LinkView> links;       // if they were asked for
  std::vector<std::string> notes;
};

// Called before each size is looked at: how far a long sweep is.
using SizeBegins = std::function<void(Bytes)>;

// Throws InputError for a group that the machine cannot have.
[[nodiscard]] CollectivePrediction predict_collective(const CollectiveExperiment& experiment,
                                                      const SizeBegins& begins = {});

}  // namespace shardsim
