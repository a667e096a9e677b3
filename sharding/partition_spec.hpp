// A PartitionSpec: for each tensor dimension the mesh axes that it is split over, by name.
//
//   P('fsdp', None)           dimension 0 over fsdp, dimension 1 whole
//   P(('data', 'fsdp'))       dimension 0 over data x fsdp, data major; further dimensions whole
//   P()                       whole; not equal to P(None), as in JAX
//
// In JSON a spec is a list with null, "axis" or ["axis", "axis"] for each dimension, and
// {"unconstrained": true} where the compiler may choose. Entries are canonical, as jax 0.7 and
// later make them: [] and "" are null, ["x"] is "x".
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_reader.hpp"
#include "sharding/sharding.hpp"

namespace shardsim {

struct SpecEntry {
  std::vector<std::string> axes;  // major to minor; empty is whole
  bool unconstrained = false;

  SpecEntry() = default;
  SpecEntry(std::initializer_list<std::string> names) : axes(names) {}
  explicit SpecEntry(std::vector<std::string> names) : axes(std::move(names)) {}
  [[nodiscard]] bool is_whole() const { return axes.empty() && !unconstrained; }
  friend bool operator==(const SpecEntry&, const SpecEntry&) = default;
};

using PartitionSpec = std::vector<SpecEntry>;

// A null among several axes of an entry: P((None, 'tp')). It is an axis that no mesh has, as for
// JAX, which makes such a spec and refuses it where it meets a mesh.
inline constexpr std::string_view null_in_entry = "(null)";

// Throws RuleError (ValueError) for an entry inside an entry, InputError for anything that is no
// entry. Axis names are not checked: to_sharding does that.
[[nodiscard]] SpecEntry read_spec_entry(const JsonReader& json);
[[nodiscard]] PartitionSpec read_partition_spec(const JsonReader& json);
[[nodiscard]] Json to_json(const SpecEntry& entry);
[[nodiscard]] Json to_json(const PartitionSpec& spec);

// "P(fsdp, None)", "P((data, fsdp), UNCONSTRAINED)".
[[nodiscard]] std::string to_string(const PartitionSpec& spec);
// The inverse of to_string. Names may be quoted as Python prints them, "P" may be "PartitionSpec"
// and, with the parentheses, left out: "fsdp, None". Throws InputError.
[[nodiscard]] PartitionSpec parse_partition_spec(std::string_view text, const Place& place);

// The sharding that jax.sharding.NamedSharding(mesh, spec) gives an array of `rank` dimensions.
// Axes of one device stay in it. Checked in JAX's order, each a RuleError: an axis used twice
// (DuplicateSpecError), an axis that the mesh lacks (ValueError), more entries than dimensions
// (ValueError), UNCONSTRAINED (ValueError: it has a meaning inside jit only).
[[nodiscard]] Sharding to_sharding(const PartitionSpec& spec, std::size_t rank, const Mesh& mesh,
                                   const Place& place);
// The first two of these checks.
void check_axes(const PartitionSpec& spec, const Mesh& mesh, const Place& place);
// One entry per dimension.
[[nodiscard]] PartitionSpec spec_of(const Sharding& sharding, const Mesh& mesh);

}  // namespace shardsim
