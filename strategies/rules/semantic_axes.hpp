// eformer's names for the dimensions of tensors, and which field of a PartitionAxis each stands
// for:
//
//   __BATCH__  batch_axis      __EMBED__  hidden_state_axis      __FSDP__  fully_sharded_...
//
// Others may be registered, for a field, a mesh axis, another such name, or a list of these. In
// generation modes some fields give way to their decode_* twins, and a registered name to the rule
// that was registered for generation.
//
// __DP__, __FSDP__, __TP__, __SP__ and __EP__ are short for __DATA_PARALLEL__ and so on, as the
// constants of eformer are called; "_" and null leave a dimension whole.
//
// Source: github.com/erfanzar/eformer at 4b17881, eformer/common_types.py and
// eformer/escale/partition/manager.py. The registry there is global, here it is a value.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/rules/partition_axis.hpp"

namespace shardsim {

inline constexpr std::string_view whole_dimension = "_";

class SemanticAxes {
 public:
  // Without a `generation` rule a name that stands for a field follows that field's twin. Throws
  // RuleError (ValueError): a blank name; a known one, unless told to override it.
  void add(std::string_view name, AxisRule rule, std::optional<AxisRule> generation,
           bool override_known, const Place& place);
  // Throws RuleError: ValueError for a blank name, KeyError for one that was not added and may not
  // be missing.
  void remove(std::string_view name, bool missing_ok, const Place& place);

  // What a name stands for, with names that were added first; nothing when it is not known.
  [[nodiscard]] AxisRule find(std::string_view name) const;
  [[nodiscard]] const AxisRule* find_generation(std::string_view name) const;
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  std::map<std::string, AxisRule, std::less<>> added_;
  std::map<std::string, AxisRule, std::less<>> added_generation_;
};

// "head_axis" -> "decode_head_axis"; "" for a field without a twin.
[[nodiscard]] std::string_view generation_twin(std::string_view field);

}  // namespace shardsim
