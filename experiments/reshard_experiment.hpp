// A reshard: an array, or the parameters of a model, from one mesh and sharding to another.
//
//   { "shape": [4096, 14336], "dtype": "bf16",
//     "from": {"mesh": {"fsdp": 8}, "spec": ["fsdp", null]},
//     "to": {"mesh": {"dp": 2, "tp": 4}, "spec": [null, "tp"]},
//     "devices": "disjoint", "machine": "dgx-h100" }
//
// What may be left out, and what it means then:
//   dtype     "bf16"; a tree's leaves have their own
//   devices   "disjoint": the target's devices follow the source's (a trainer and a sampler), on a
//             torus on a slice of their own, over DCN; or "shared": both meshes are made of the
//             same devices from 0 on (elastic restart)
//   topology  the most cubic slice of a torus; of two slices each end can have its own
//   machine   none: what moves and what it takes in memory, no times
//   calibration  the machine's (experiments/experiment.hpp)
//   name      the file's stem
// In place of "devices" both ends can have a list of theirs, by position of the mesh, row-major, as
// sim/collectives/device_order.hpp numbers them: "from": {"devices": [0, 1, 2, 3], ...}.
// A shape may be written "4096x14336", a mesh "dp=2,tp=4", a spec "None, tp", devices "0-3,8".
//
// A scalar has the shape [] or "".
//
// In place of "shape" and "dtype" a "tree": the path, relative to the file, of a parameter tree or
// of an experiment, whose parameters it then is, or the document of a tree itself. "variant" names
// one of an experiment that has several. Each end then has, in place of "spec", which all leaves
// can share, one of
//   "specs": [{"pattern": "(wi|q)/kernel", "spec": ["fsdp", "tp"]}, ...]   first found in the name
//   "specs": {"params/wi/kernel": ["fsdp", "tp"], ...}   every leaf by its name
//   "specs": "recorded"             what the tree or experiment says; "mesh" then as well
//   "strategy": "fsdp" or {"name": ..., ...}   as in an experiment of the tree
// A leaf that has no spec by these is an error: [{..., {"pattern": "", "spec": []}] catches all.
// "from" may be left out of a tree: it lies as recorded.
//
// The arrays may lie in the memory of hosts, as they are cut up for the devices:
//   "from": {"memory": "host", ...}        to the devices first
//   "to": {"memory": "host", ...}          every device's shard, as JAX's "pinned_host"
//   "to": {"memory": "checkpoint", ...}    every piece once, by the first device that has it
// "to" may then leave out mesh, specs and devices: those of "from".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/machine_reshard_cost.hpp"
#include "sharding/partition_spec.hpp"
#include "sharding/pathways.hpp"
#include "workloads/files/parameter_tree.hpp"

namespace shardsim {

struct ReshardEnd {
  Mesh mesh;
  std::optional<std::vector<std::int64_t>> devices;  // by position; of both ends or of none
  std::optional<std::string> topology;               // of its own slice
  std::vector<PartitionSpec> specs;                  // as ReshardExperiment::arrays
  std::optional<std::string> memory;                 // "host", "checkpoint"; none: the devices'
};

struct ReshardExperiment {
  std::string name;
  std::string file;
  ParameterTree arrays;  // one leaf, called "array", for a shape
  ReshardEnd source;
  ReshardEnd target;
  bool shared = false;
  std::string machine;  // empty: none
  std::optional<std::string> topology;
  Place machine_place;
  std::optional<std::vector<Calibration>> calibrations;  // instead of the machine's
  Place calibration_place;
};

// Throws InputError.
[[nodiscard]] ReshardExperiment read_reshard(const Json& document, const std::string& file);

// What pathways' find_intermediate_sharding answers: an intermediate, or why there is none; and
// what reshard_with_intermediate_sharding then does. Without an intermediate that is the direct way
// where the error is a NoIntermediateShardingError, and nothing where it is another.
struct PathwaysAnswer {
  std::optional<IntermediateSharding> intermediate;
  std::string error_type;
  std::string reason;
  std::optional<ReshardPlan> plan;  // none: it raises, or the machine cannot run its gather
};

// Leaves that are alike in shape, dtype and specs.
struct ReshardedGroup {
  std::vector<std::size_t> leaves;  // indices, ascending
  ReshardChoice choice;
  PathwaysAnswer pathways;
};

// Of one way, all leaves one after the other in the order of the tree.
struct ReshardSum {
  Seconds time{0};
  Bytes crossing{0};
  Bytes peak{0};          // on the fullest device
  Bytes donated_peak{0};  // the same where every array is given away
};

// What hosts get, or give.
struct HostSum {
  Bytes bytes{0};               // in all
  Bytes device{0};              // of the device that copies most
  std::optional<Bytes> host{};  // of the host that has most; none: the profile has no hosts
  std::optional<int> hosts{};   // that have any
};

struct ReshardTotals {
  Bytes bytes{0};  // one copy of every array
  ReshardSum direct;
  ReshardSum chosen;
  std::optional<ReshardSum> pathways;  // none: of an array it has no way
  Bytes source_shard{0};               // on one device
  Bytes target_shard{0};
  std::optional<HostSum> from_host;
  std::optional<HostSum> to_host;
};

struct ReshardPrediction {
  ReshardExperiment experiment;
  std::vector<ReshardedGroup> groups;  // by their first leaf
  ReshardTotals totals;
  bool shares_devices = false;  // a device is in both meshes
  std::string where;            // MachineReshardCost::where
};

[[nodiscard]] ReshardPrediction predict_reshard(const ReshardExperiment& experiment);

// "direct: 0.33 ms against 0.41 ms by way of [dp, tp]", "the target lies as the source does".
[[nodiscard]] std::string why(const ReshardExperiment& experiment, const ReshardChoice& choice);
// "[dp, tp] on the target", for a plan that is not direct.
[[nodiscard]] std::string way(const ReshardExperiment& experiment, const ReshardPlan& plan,
                              const ReshardPlan& direct);

}  // namespace shardsim
