// Between a tensor's dimensions and an op's factors (Shardy's sharding projection).
//
// A dimension is a product of factors, major to minor. Axes on it fall on the factors in order; an
// axis larger than what is left of a factor is split, the minor part going to the next:
//
//   q_proj.weight dimension 0 = kv_heads(8) * group(4) * head_dim(128), split over model = 16
//     kv_heads: model:(1)8      group: model:(8)2
//
// An axis that neither divides the factor nor is divided by it cannot be projected (the shard
// boundaries cut across the factor), except on a dimension of a single factor, where the shards
// are padded.
#pragma once

#include <map>
#include <vector>

#include "sharding/sharding.hpp"
#include "workloads/graph/op_graph.hpp"

namespace shardsim {

// Axes of every factor of an op; a factor that is absent is whole. Ordered by label: deterministic.
using FactorAxes = std::map<LabelId, AxisList>;

// The axes of `sharding` seen from the factors of `dims`. Axes that cannot be projected are left
// out: who reads the tensor by these factors must gather them.
[[nodiscard]] FactorAxes project(const Sharding& sharding, const std::vector<Dim>& dims,
                                 const std::vector<Label>& labels);

// The sharding of a tensor with `dims` when its factors are split as `factors` says. A minor
// factor's axes are kept behind a major one that is not fully split by marking `blocks`, and left
// out when even that cannot express them.
[[nodiscard]] Sharding sharding_of(const std::vector<Dim>& dims, const FactorAxes& factors,
                                   const std::vector<Label>& labels);

}  // namespace shardsim
