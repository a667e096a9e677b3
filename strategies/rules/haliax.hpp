// Axis mappings of haliax: every named axis is looked up on its own.
//
//   mapping {"embed": "data", "mlp": ["data", "model"]}
//   axes [embed, kv]   ->  P(data, None)
//   axes [embed, mlp]  ->  P(data, (data, model))   no conflict is seen here; NamedSharding refuses
//
// Source: stanford-crfm/haliax src/haliax/partitioning.py at f41e7d4.
#pragma once

#include <cstdint>
#include <optional>

#include "strategies/rules/logical_axes.hpp"

namespace shardsim {

// {"embed": "data", ...} as rules, one per name.
[[nodiscard]] LogicalAxisRules read_axis_mapping(const JsonReader& json);

// haliax's pspec_for_axis. A name that is not mapped gets null.
[[nodiscard]] LogicalAssignment apply_axis_mapping(const PartitionSpec& names,
                                                   const LogicalAxisRules& mapping);

// haliax's round_axis_for_partitioning: the size rounded up to a multiple of the devices that the
// axis is mapped to; as it is when it is not mapped. 50257 over 8 gives 50264.
[[nodiscard]] std::int64_t round_axis(std::int64_t size, std::optional<std::int64_t> devices);

// Row "haliax": {"mapping": {"embed": "data", ...}}. A leaf without logical axes is a plain array,
// which haliax leaves whole: P() for a scalar, else P(None).
[[nodiscard]] SpecAssignment assign_haliax(const ParameterTree& tree, const Mesh& mesh,
                                           const JsonReader& strategy);

}  // namespace shardsim
