// Rule systems: what gives every leaf of a parameter tree its PartitionSpec, read as the system it
// comes from reads it. One file pair per system, one row each in the table.
//
//   "strategy": {"name": "big_vision", "rules": [[".*", "fsdp(axis=\"data\")"]]}
//
// is row "big_vision", whose `assign` is given this object, the tree and the mesh. It answers a
// spec for every leaf and says which rule decided; what the original refuses is a RuleError.
// Keys that every strategy may have ("batch_axes", ...) are not in the object that it is given.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_reader.hpp"
#include "plan/mesh.hpp"
#include "sharding/partition_spec.hpp"
#include "strategies/rules/system_axes.hpp"
#include "strategies/runtime/runtime.hpp"
#include "workloads/files/parameter_tree.hpp"

namespace shardsim {

// A rule by its index in SpecLayout::rules; nothing: none.
using RuleIndex = std::optional<std::size_t>;

struct LeafSpec {
  PartitionSpec spec;  // as the original returns it: may be shorter than the rank
  RuleIndex rule;      // what decided; of several the first that gave the leaf an axis
  // Why the leaf is less sharded than the rule asked for, in a few words: "4.0 MiB is not more than
  // min_size_to_shard_mb=4", "no dimension divides by 256". Empty when it is not.
  std::string reason;
  // Where rules decide dimension by dimension, which of them decided each; else empty.
  std::vector<RuleIndex> dimension_rules{};
  // Where no rule is asked, what decides in its place: "shard_params: dimension 0 over data".
  std::string tactic{};
  friend bool operator==(const LeafSpec&, const LeafSpec&) = default;
};

struct RuleUse {
  std::string text;  // as the user wrote it, "encoder/.* -> fsdp(axis=\"data\")"
  Place place;
  std::int64_t matches = 0;  // leaves that it would match if it stood alone
  // Leaves that it decided; 0 with matches > 0: earlier rules come before it everywhere.
  std::int64_t decides = 0;
  // Of such a rule, an earlier one that matches all that it matches and more, which makes it a
  // special case that never gets its turn. A fallback behind special cases has none.
  RuleIndex shadowed_by{};
  bool built_in = false;  // of the system, not written by the user
  friend bool operator==(const RuleUse&, const RuleUse&) = default;
};

struct SpecAssignment {
  std::vector<LeafSpec> leaves;         // as ParameterTree::leaves
  std::vector<RuleUse> rules;           // in the order of the file; empty for systems without rules
  std::vector<std::string> warnings{};  // that the original logs
};

// What decided a leaf: "rule 2: .*kernel -> P(data)"; by dimension "dimension 0 by rule 3: embed ->
// fsdp; dimension 1 by rule 0: mlp -> tensor"; its tactic; "no rule".
[[nodiscard]] std::string decided_by(const LeafSpec& leaf, const std::vector<RuleUse>& rules);

// An activation's spec with an axis that the mesh lacks.
enum class UnfitActivation : std::uint8_t {
  refused,   // as JAX refuses it
  skipped,   // eformer's with_sharding_constraint: the activation is left alone
  corrected  // eformer's PartitionManager.shard: get_corrected_named_sharding drops such entries,
             // and those whose axes do not divide the dimension
};

// An input of a step: how it lies when it enters, and how it is read. A spec may be shorter than
// the rank.
struct InputSpecs {
  PartitionSpec entering;
  PartitionSpec read;
};

// Parameters with a dimension that its axes do not divide (strategies/specs/uneven_shards.hpp).
enum class UnevenParameters : std::uint8_t {
  refused_by_jit,        // as in_shardings and out_shardings have to divide
  refused_by_shard_map,  // as in_specs and out_specs have to
  padded                 // by the system, where they enter the program (uneven_padding.hpp)
};

struct RuleSystem {
  std::string_view name;          // "big_vision"
  std::string_view summary;       // one line for --help
  std::vector<std::string> keys;  // of the object, beside "name" and what every strategy may have
  // `strategy` is the object that names the system. Throws RuleError and InputError.
  SpecAssignment (*assign)(const ParameterTree& tree, const Mesh& mesh, const JsonReader& strategy);
  // The spec of an activation, where the system has names of its own for dimensions.
  PartitionSpec (*read_activation)(const JsonReader& spec, const JsonReader& strategy) = nullptr;
  UnfitActivation unfit_activation = UnfitActivation::refused;
  UnevenParameters uneven_parameters = UnevenParameters::refused_by_jit;
  // Each device takes minibatches of its examples, and drops those that are left over.
  bool drops_examples = false;
  // Nothing is its own: names and roles are everybody's (axis_roles.hpp).
  SystemAxes (*axes)(const JsonReader& strategy, const Mesh& mesh) = nullptr;
  // Where inputs do not enter as they are read; nothing: they do, split over the batch and sequence
  // axes of the strategy.
  std::optional<InputSpecs> (*inputs)(std::size_t rank, const JsonReader& strategy,
                                      const Mesh& mesh) = nullptr;
  // The axes that the batch enters over, where these are not those that it is read over; the other
  // dimensions then enter whole.
  std::optional<std::vector<std::string>> (*entering_axes)(const JsonReader& strategy,
                                                           const Mesh& mesh) = nullptr;
  // Goes by names of dimensions, which parameter trees may have, and models under some views.
  bool reads_logical_axes = false;
  // Under which it sees a model's parameters where nobody says it (workloads/views/view.hpp);
  // empty: as they are.
  std::string_view view{};
  // Where its rules say which of several; nothing: `view`.
  std::string_view (*view_of)(const JsonReader& strategy) = nullptr;
  // The train state beside the parameters: what its names begin with, whether a counter of steps is
  // in it, and whether the rules see all of it or the parameters alone.
  std::string_view state_prefix = "opt_state/";
  bool counts_steps = true;
  bool sees_state = false;
  bool whole_outputs = false;  // all but the state leaves a step whole on every device
  // Of programs of jit: tensor by tensor.
  Runtime runtime{.gathers = {.grain = Grain::tensor}, .reductions = {.grain = Grain::tensor}};
};

[[nodiscard]] const std::vector<RuleSystem>& rule_systems();
[[nodiscard]] const RuleSystem* find_rule_system(std::string_view name);  // nullptr: none

}  // namespace shardsim
