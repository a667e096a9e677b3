// An all-reduce of which every device keeps only its own n-th part is a reduce-scatter. XLA's
// partitioner writes it so, GPU compilers turn it into one, and TPU compilers hide the pair in a
// fusion, named all-reduce-scatter, that does the same:
//
//   %ar = f32[1024] all-reduce(%x), replica_groups={{0,1,2,3}}
//   %ds = f32[256] dynamic-slice(%ar, %offset)        %offset computed from partition-id
//
// Only slices of the all-reduce itself count. One that is passed on to another fusion first is
// summed whole and sliced there; several operands in one call are left an all-reduce too.
#pragma once

#include <optional>
#include <unordered_map>

#include "hlo/callers.hpp"

namespace shardsim {

class ScatterFinder {
 public:
  explicit ScatterFinder(const HloModule& module) : module_(module) {}

  // Whether every use of the all-reduce `id` over groups of `group_size` keeps the device's part.
  [[nodiscard]] bool is_scattered(HloId id, std::int64_t group_size);

 private:
  bool keeps_a_part(HloId user, HloId value, std::int64_t group_size);
  bool depends_on_device(HloId id, int depth);
  bool element_depends(HloId tuple, std::size_t index, int depth);

  HloCallers& callers();

  const HloModule& module_;
  std::optional<HloCallers> callers_;  // made when the first all-reduce asks
  std::unordered_map<HloId, bool> depends_;
};

}  // namespace shardsim
