// From one sharding of a tensor to another on the same mesh: the collectives it takes.
//
//   W [fsdp, -]               -> [-, -]             all-gather over fsdp
//   Y [-, -] partial(model)   -> [-, -]             all-reduce over model
//   Y [-, -] partial(model)   -> [model, -]         reduce-scatter over model
//   G [-] partial(data, fsdp) -> [fsdp]             reduce-scatter over fsdp, all-reduce over data
//   X [model, -]              -> [-, model]         all-to-all over model
//   X [-, -]                  -> [model, -]         nothing: every device keeps its slice
//
// Order of the steps: what makes the tensor smaller first (reduce-scatter, slice), then all-reduce
// and all-to-all, then all-gather. That is the cheapest order among these steps for one tensor; a
// search over longer paths is not done.
#pragma once

#include <vector>

#include "plan/plan.hpp"
#include "sharding/sharding.hpp"

namespace shardsim {

struct ReshardStep {
  CollectiveKind kind = CollectiveKind::all_gather;
  AxisList axes;              // the group
  std::int64_t elements = 0;  // of the payload, as plan.hpp defines it for the kind
  Sharding after;             // of the tensor once the step is done
};

// Partial axes of `to` must be partial in `from`.
[[nodiscard]] std::vector<ReshardStep> reshard(const std::vector<std::int64_t>& shape,
                                               const Sharding& from, const Sharding& to);

// Elements that one device sends for these steps: the price that the partitioner compares.
[[nodiscard]] std::int64_t wire_elements(const std::vector<ReshardStep>& steps);

}  // namespace shardsim
