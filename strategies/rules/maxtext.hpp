// Logical axis rules as MaxText uses them: flax.linen's (logical_axes.hpp), with rules of the model
// or the command line in place of the base configuration's, and what it does to specs afterwards.
//
//   rules        [["embed", "fsdp"], ["mlp", "tensor"]]
//   model_rules  [["embed", ["fsdp", "expert"]]]
//   together     [["mlp", "tensor"], ["embed", ["fsdp", "expert"]]]     embed now comes last
//
// Source: AI-Hypercomputer/maxtext src/maxtext at e591f30, configs/pyconfig.py and
// utils/sharding.py.
#pragma once

#include <cstdint>
#include <vector>

#include "strategies/rules/logical_axes.hpp"

namespace shardsim {

// Every base rule whose name a new rule has goes; the new rules come last, and with that have the
// least priority.
[[nodiscard]] LogicalAxisRules merge_logical_axis_rules(const LogicalAxisRules& base,
                                                        const LogicalAxisRules& added);

// Without the axes that have one device, and without those that the mesh lacks.
[[nodiscard]] PartitionSpec remove_size_one_mesh_axes(const PartitionSpec& spec, const Mesh& mesh);

// Axis by axis, major first: an axis stays when the dimension divides by it together with those
// that stayed before. P((data, fsdp)) on 12 with data=2, fsdp=4 is P(data). Throws RuleError
// (KeyError for an axis that the mesh lacks).
[[nodiscard]] PartitionSpec adjust_for_indivisible_shape(const PartitionSpec& spec,
                                                         const std::vector<std::int64_t>& shape,
                                                         const Mesh& mesh, const Place& place);

// Entries of `dims` that do not divide their dimension become null as a whole, or, unless
// `allow_remove_axes`, are a RuleError (ValueError). P((data, fsdp)) on 12 is P(None). A negative
// dimension counts from the end, as Python's index does: of the spec and of the shape each by its
// own length, so that -1 of P(a, b) on 4 dimensions is entry 1 and dimension 3. KeyError as above,
// IndexError for a dimension that the spec or the shape lacks.
[[nodiscard]] PartitionSpec remove_incompatible_axes(const PartitionSpec& spec,
                                                     const std::vector<std::int64_t>& shape,
                                                     const Mesh& mesh,
                                                     const std::vector<std::int64_t>& dims,
                                                     bool allow_remove_axes, const Place& place);

// As the base configuration splits activations: the batch over data, fsdp, fsdp_transpose and
// expert, the sequence over context; or as rules for activation_batch and activation_length say.
// Experts as the rule for exp says: tokens are sent to them (layers/moe.py).
[[nodiscard]] SystemAxes maxtext_axes(const JsonReader& strategy, const Mesh& mesh);

// The view whose names the rules speak: in 0.2.5 attention's and routers' dimensions of the stream
// have names of their own, "embed_attn" and "embed_router".
[[nodiscard]] std::string_view view_of_maxtext(const JsonReader& strategy);

// Row "maxtext":
//   {"rules": [...], "model_rules": [...], "remove_size_one_axes": false, "fit": "keep"}
// where `fit` says what becomes of an entry that does not divide its dimension: "keep" it
// (MaxText's parameters), "per_axis" (adjust_for_indivisible_shape), "whole_entry"
// (remove_incompatible_axes) or "refuse" it. All but "rules" may be left out.
[[nodiscard]] SpecAssignment assign_maxtext(const ParameterTree& tree, const Mesh& mesh,
                                            const JsonReader& strategy);

}  // namespace shardsim
