// The ops of big_vision's tactics; strategies/rules/big_vision.hpp says what each does.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plan/mesh.hpp"
#include "strategies/rules/dimension_order.hpp"
#include "strategies/rules/logical_axes.hpp"
#include "workloads/files/parameter_tree.hpp"

namespace shardsim {

// A leaf's spec while ops work on it. An entry may be set and yet name no axis: fsdp(axis=()) takes
// a dimension so.
struct BigVisionLeaf {
  const ParameterLeaf* leaf = nullptr;
  std::vector<std::optional<SpecEntry>> entries;  // nullopt: free
  bool is_boxed = false;                          // flax's box still stands in place of the spec
  std::string invalid;                            // why PartitionSpec will refuse an entry
  std::string reason;                             // LeafSpec::reason
  std::vector<std::string> warnings;              // that big_vision logs
};

using BigVisionOp = std::function<void(BigVisionLeaf& leaf)>;

// Looks the op up and binds its arguments. Throws RuleError as parse_op does, KeyError for an
// unknown op and TypeError for arguments that do not fit; what the op throws is said in the .cpp.
// `mesh` and `rules` outlive the op.
[[nodiscard]] BigVisionOp make_big_vision_op(const std::string& op, const Mesh& mesh,
                                             const LogicalAxisRules& rules, EqualDimensions ties,
                                             const Place& place);

}  // namespace shardsim
