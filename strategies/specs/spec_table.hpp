// How every parameter lies on the mesh: what `shardsim specs` prints. Made of a parameter tree by
// rules alone, or taken from a compiled step.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "sharding/sharding.hpp"
#include "strategies/rules/rule_system.hpp"
#include "strategies/strategy.hpp"

namespace shardsim {

struct ParameterSharding {
  std::string name;  // with "{}" for the layer
  std::vector<std::int64_t> shape;
  std::int64_t instances = 1;
  DType dtype = DType::f32;                 // as stored
  std::string assigned_by;                  // "rule 2: .*kernel", "fsdp: dimension 0", ...
  RuleIndex rule;                           // index into SpecTable::rules
  std::vector<RuleIndex> dimension_rules;   // LeafSpec::dimension_rules
  bool is_state = false;                    // of the optimizer or the step, no parameter
  bool by_tactic = false;                   // no rule decides what a tactic of its system does
  std::optional<LogicalAxes> logical_axes;  // of a tree that has them
  std::string reason;                       // why it is less sharded than the rule asked for
  Sharding stored;                          // between steps; without axes of one device
  PartitionSpec spec;                       // the same, one entry for each dimension
  PartitionSpec returned;                   // as the rule system returns it, else as `spec`
  std::vector<std::int64_t> shard_shape;    // padded
  Bytes bytes_per_device{0};                // of the stored shard, one instance
  Bytes padding_per_device{0};              // of that, padding
  // Of a compiled step only, else empty.
  PartitionSpec compute_spec;  // as ops read it
  PartitionSpec gradient_spec;
  PartitionSpec optimizer_spec;
};

struct SpecTable {
  std::string subject;  // "llama-3.1-8b"
  Mesh mesh;
  bool of_a_step = false;               // compute_spec and so on are filled
  bool trains = true;                   // false: of a forward step, without gradients
  std::optional<AxisList> data_axes{};  // split the batch or the sequence; nothing: not known
  std::vector<ParameterSharding> parameters;
  std::vector<ParameterSharding>
      outputs{};  // of every example, which the step leaves; no parameters
  std::vector<RuleUse> rules;
  std::vector<std::string> warnings;
};

// The row of one parameter, as far as its stored sharding says.
[[nodiscard]] ParameterSharding describe(std::string name, std::vector<std::int64_t> shape,
                                         std::int64_t instances, DType dtype,
                                         const Sharding& stored, const Mesh& mesh);

// Whole axes over which the strategy splits the batch or the sequence of the inputs.
[[nodiscard]] AxisList data_axes(const Strategy& strategy, const Mesh& mesh);

// Rules and recipes that need no operations, over a tree. Throws InputError and RuleError; a recipe
// that splits by what a dimension means (tp, fsdp+tp) is refused: a tree does not say that.
[[nodiscard]] SpecTable tree_specs(const ParameterTree& tree, const Mesh& mesh,
                                   const Strategy& strategy);

// Rows whose names differ in numbers only and that are alike in everything else, as one row with
// "{}" for each number that differs. Order of first appearance.
//   layers/0/w, layers/1/w -> layers/{}/w, instances 2
[[nodiscard]] std::vector<ParameterSharding> fold_layers(
    const std::vector<ParameterSharding>& rows);

// The same of rows that differ from one of `kinds` in the name alone.
struct RowOfKind {
  std::string name;
  std::size_t kind = 0;
};
[[nodiscard]] std::vector<ParameterSharding> fold_layers(
    const std::vector<ParameterSharding>& kinds, std::vector<RowOfKind> rows);

}  // namespace shardsim
