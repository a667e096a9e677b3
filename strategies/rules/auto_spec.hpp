// eformer's automatic specs: no rules, only shapes and the sizes of mesh axes.
//
//   mesh dp=2, fsdp=4, tp=8; names by size: tp, fsdp, dp
//   [1024, 8192, 512]  ->  P(fsdp, tp, dp)     the largest dimension first takes tp, then fsdp, dp
//   [4100, 4096]       ->  P(fsdp, tp)         4100 does not divide by 8, but by 4
//   [4097, 4099]       ->  P(None, None)       nothing divides
//   [2, 2]             ->  P()                 4 elements are fewer than 64 devices
//
// The dimensions, largest first (smallest first with `reverse`; of equal ones the first, or as
// dimension_order.hpp has it), each take
// the first name left that divides them; a name is one axis or a tuple of axes and is taken once.
// A dimension never gets two names, so that a vector on this mesh is split 8 ways, not 64.
//
// Source: github.com/erfanzar/eformer, eformer/escale/partition/auto_spec.py at 4b17881.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sharding/partition_spec.hpp"
#include "strategies/rules/dimension_order.hpp"
#include "strategies/rules/rule_system.hpp"

namespace shardsim {

struct AutoSpecOptions {
  std::vector<SpecEntry> names;  // empty: every mesh axis, by falling size
  std::int64_t min_size = 0;     // elements; 0: as many as there are devices
  bool reverse = false;
  // vrn_auto_partition_spec: a name that is listed twice may be taken twice.
  bool keep_duplicates = false;
  EqualDimensions ties = EqualDimensions::stable;  // of equal dimensions, and of equal axes
};

// Throws RuleError: KeyError for an unknown axis in `names` (but not on a leaf that is too small),
// TypeError for a leaf that is no array.
[[nodiscard]] PartitionSpec auto_partition_spec(const ParameterLeaf& leaf, const Mesh& mesh,
                                                const AutoSpecOptions& options, const Place& place);

// optimize_sharding_for_memory: a leaf smaller than the limit stays whole, as does everything
// without a limit; any other is split by auto_partition_spec over `names`, which are the mesh's
// axes in the mesh's order when nothing is given. That the shards fit the limit is not checked.
[[nodiscard]] PartitionSpec memory_optimized_spec(const ParameterLeaf& leaf, const Mesh& mesh,
                                                  std::optional<Bytes> limit,
                                                  std::optional<std::vector<SpecEntry>> names,
                                                  const Place& place,
                                                  EqualDimensions ties = EqualDimensions::stable);

// validate_sharding_config: what its checks find, leaf by leaf.
struct ShardingIssue {
  enum class Kind : std::uint8_t {
    indivisible,  // a dimension does not divide by its axis
    small,        // fewer than 1024 elements, and a spec that is not P()
  };
  Kind kind;
  std::size_t leaf;  // index into ParameterTree::leaves
  std::size_t dim = 0;
};
// `specs` has one spec per leaf. Throws RuleError: KeyError for an unknown axis and, a defect of
// the original kept here, for a tuple of axes; IndexError for a spec longer than the leaf's rank.
[[nodiscard]] std::vector<ShardingIssue> validate_sharding_config(
    const ParameterTree& tree, const std::vector<PartitionSpec>& specs, const Mesh& mesh);

// [ "fsdp", ["dp", "tp"] ]
[[nodiscard]] std::vector<SpecEntry> read_auto_names(const JsonReader& json);

// {"names": ["fsdp", ["dp", "tp"]], "min_size": 0, "reverse": false}
[[nodiscard]] SpecAssignment assign_auto_partition_spec(const ParameterTree& tree, const Mesh& mesh,
                                                        const JsonReader& strategy);

}  // namespace shardsim
