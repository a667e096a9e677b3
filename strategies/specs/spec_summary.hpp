// What a sharding of a model's parameters costs in memory, and what it makes devices send: figures
// over a parameter tree, its shardings and the mesh, whichever rules they come from.
//
//   mesh fsdp=4, tp=2;  w[10, 3] f32 with [fsdp, tp], b[3] f32 whole: 132 B in all
//   shards of w  ceil(10/4) x ceil(3/2) = 3 x 2; rows 3 3 3 1, columns 2 1
//   device (0,0) holds 3*2*4 + 12 = 36 B, device (3,1) holds 1*1*4 + 12 = 16 B
//   mean 120/8 + 12 = 27 B;  balance 27/36 = 0.75;  overhead 36*8/132 = 2.18 x the ideal
//
// Shards are XLA's: of N rows over n shards each has ceil(N/n), the last ones fewer or none. A
// program allocates the full shard everywhere, so `max` is what every device must have; min and
// mean count the rows that are really there. Shards shrink with the coordinate along every axis:
// the first device holds the most of every tensor, the last one the least, and nothing has to be
// enumerated. Cost: O(leaves * rank), whatever the number of devices.
//
// Communication is that of one training step in which
//   - along the data axes, which split the batch or the sequence, a parameter that is split is
//     gathered once, before use (a second gather for the backward pass would double that row);
//   - every device makes a gradient of what it then has, in the parameter's dtype (integers and
//     booleans have none); over the data axes that split the parameter it is reduce-scattered, and
//     over those that replicate it the shard is all-reduced;
//   - along every other axis a parameter stays split while it computes, as in tensor and expert
//     parallelism: nothing of it is sent there, activations are, which a tree does not tell; so it
//     does along those that split its dimension "exp" ("expert", "experts"), of the experts, though
//     the batch be split over them, too: tokens go to the experts;
//   - shards are full (padded), nothing is gathered that is not split, optimizers send nothing.
//
// Example: w[8, 8] f32 with [fsdp, tp] on fsdp=4, tp=2, data axis fsdp: each device gathers its
// half of w, 128 B, and reduce-scatters as much; over tp nothing. With both as data axes it is 256
// B.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plan/plan.hpp"
#include "sharding/sharding.hpp"
#include "workloads/files/parameter_tree.hpp"

namespace shardsim {

// What goes over one set of axes in a step.
struct SpecCollective {
  CollectiveKind kind = CollectiveKind::all_gather;
  AxisList axes;  // sorted; those of one device are left out
  std::int64_t group_size = 1;
  std::int64_t tensors = 0;
  Bytes payload{0};                // the full arrays, as everywhere in a plan
  Bytes wire_bytes_per_device{0};  // sent by each device in a ring
  friend bool operator==(const SpecCollective&, const SpecCollective&) = default;
};

struct SpecSummary {
  std::int64_t devices = 1;
  std::int64_t leaves = 0;  // arrays, as in all that follows
  std::int64_t parameters = 0;
  Bytes bytes{0};

  std::int64_t sharded_leaves = 0;  // split at least in two; the others are held whole everywhere
  std::int64_t sharded_parameters = 0;
  std::int64_t replicated_parameters = 0;
  std::vector<std::size_t> indivisible;  // leaves (by index) with a dimension that does not divide

  std::int64_t max_parameters_per_device = 0;
  Bytes max_bytes_per_device{0};
  Bytes min_bytes_per_device{0};
  double mean_bytes_per_device = 0;

  // By kind (gathers, reduce-scatters, all-reduces), then by axes in the mesh's order.
  std::vector<SpecCollective> communication;
  AxisList kept_split;  // axes that are no data axes and split a parameter, in the mesh's order
  std::int64_t kept_split_leaves = 0;  // arrays that they split

  // mean / max: 1 when every device holds as much as the fullest; 1 for nothing at all.
  [[nodiscard]] double balance() const;
  // Bytes in all devices over bytes of the model: 1 is ideal, the number of devices is all
  // replicated.
  [[nodiscard]] double replication_overhead() const;
};

// `shardings` has one entry per leaf, without partial sums; those of leaves that are no arrays are
// not looked at. `data_axes` are whole axes; nothing: all of the mesh's. `trains`: gradients are
// sent, too. Throws InputError for a tree of more than 2^60 bytes.
[[nodiscard]] SpecSummary summarize_specs(const ParameterTree& tree,
                                          const std::vector<Sharding>& shardings, const Mesh& mesh,
                                          const std::optional<AxisList>& data_axes = std::nullopt,
                                          bool trains = true);

// What is left of the mesh's axes when those in `used` are taken out, in the mesh's order.
[[nodiscard]] AxisList axes_without(const AxisList& used, const Mesh& mesh);

}  // namespace shardsim
