// eformer's PartitionManager: specs given by what dimensions mean, as EasyDeL's rules give them.
//
//   [["q_proj/kernel", "ColumnWise"], ["o_proj/kernel", "RowWise"], [".*", "Replicated"]]
//     q_proj/kernel  P((fsdp, sp), tp)     ColumnWise is [["__FSDP__", "__SP__"], "__TP__"]
//     o_proj/kernel  P(tp, (fsdp, sp))     RowWise    is ["__TP__", ["__FSDP__", "__SP__"]]
//
// A PartitionAxis says which mesh axes the names stand for; match_partition_rules then applies the
// specs. A list in a list may name mesh axes directly, a name that stands alone may not.
//
// Source: github.com/erfanzar/eformer at 4b17881, eformer/escale/partition/manager.py and
// constraints.py, eformer/common_types.py.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sharding/partition_spec.hpp"
#include "strategies/rules/rule_system.hpp"
#include "strategies/rules/semantic_axes.hpp"

namespace shardsim {

inline constexpr std::string_view train_mode = "__train__";
inline constexpr std::string_view decode_mode = "__autoregressive__";

// Decoding and inserting into a cache; training, prefilling and any other word are not.
[[nodiscard]] bool is_generation(std::string_view mode);
// An integer for a mode: decoding when that dimension of the tensor has size 1, else training.
// Throws RuleError: ValueError without a shape, IndexError for a dimension that it lacks.
[[nodiscard]] std::string_view mode_of_dimension(
    std::int64_t dim, const std::optional<std::vector<std::int64_t>>& shape, const Place& place);

class PartitionManager {
 public:
  PartitionManager(PartitionAxis axis, SemanticAxes names)
      : axis_(std::move(axis)), names_(std::move(names)) {}

  // One rule per dimension, made of mesh axes alone. Throws RuleError (ValueError): an unknown
  // name, names that stand for each other in a circle.
  [[nodiscard]] std::vector<AxisRule> resolve_axes(const std::vector<AxisRule>& dims,
                                                   std::string_view mode, const Place& place) const;
  // The same as a spec. Throws RuleError (ValueError) also for lists that have come to be nested.
  [[nodiscard]] PartitionSpec resolve(const std::vector<AxisRule>& dims, std::string_view mode,
                                      const Place& place) const;
  // Is it a name of a dimension, null's "_" among them?
  [[nodiscard]] bool knows(std::string_view name) const;

 private:
  [[nodiscard]] AxisRule resolve_dim(const AxisRule& dim, bool generation,
                                     const Place& place) const;
  [[nodiscard]] AxisRule for_generation(std::string_view name, AxisRule rule) const;
  [[nodiscard]] AxisRule follow(const AxisRule& rule, std::set<std::string> visited,
                                const Place& place) const;

  PartitionAxis axis_;
  SemanticAxes names_;
};

// "ColumnWise", "RowWise", "Replicated", "ExpertColumnWise", ...: EasyDeL's names for lists of
// dimensions of parameters. nullptr: no such name.
[[nodiscard]] const std::vector<AxisRule>* find_named_dims(std::string_view name);
[[nodiscard]] std::vector<std::string> named_dims();

// get_corrected_named_sharding: the spec cut or padded with null to the rank; an entry with an axis
// that the mesh lacks, or whose axes together do not divide the dimension, becomes null as a whole;
// if nothing is left, P(). Throws RuleError (DuplicateSpecError) for an axis used twice.
[[nodiscard]] PartitionSpec corrected_spec(const PartitionSpec& spec,
                                           const std::vector<std::int64_t>& shape, const Mesh& mesh,
                                           const Place& place);

// {"rules": [[pattern, "ColumnWise" or [dimension, ...]], ...],
//  "partition_axis": {"tensor_parallel_axis": "model", ...},       fields to override
//  "semantic_axes": {"__MY_AXIS__": "head_axis", ...},             names to add
//  "mode": "__train__", "min_size": 16384, "strict": true,
//  "correct": false}                                               corrected_spec on every leaf
[[nodiscard]] SpecAssignment assign_partition_manager(const ParameterTree& tree, const Mesh& mesh,
                                                      const JsonReader& strategy);

// The spec of an activation: "ExpertActivations" or a list of names as in a rule, in the mode and
// with the axes of `strategy`. Unlike in a rule a name that is not known is a mesh axis.
[[nodiscard]] PartitionSpec read_managed_activation(const JsonReader& spec,
                                                    const JsonReader& strategy);

}  // namespace shardsim
