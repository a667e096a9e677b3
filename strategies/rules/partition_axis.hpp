// eformer's PartitionAxis: which mesh axes split a batch, a sequence, heads, a vocabulary, ...
//
//   PartitionAxis()                              batch_axis (fsdp, dp), head_axis tp, expert_axis
//   ep PartitionAxis(tensor_parallel_axis="model")  head_axis, mlp_intermediate_axis, ... model
//   PartitionAxis(head_axis="x")                 head_axis x; generation_head_axis stays tp
//
// Five fields name the mesh's axes, the others default to them. In JSON an override is null
// (whole), an axis, a list of axes, or "..." for the default, which some fields do not have.
//
// Two versions: that of March 2025, whose fields for generation are called generation_* and take
// their defaults from the mesh's axes; and the later one, with decode_* that take theirs from the
// field that they stand in for, and fields for key-value heads.
//
// Source: github.com/erfanzar/eformer, eformer/escale/partition, at 5c877a3 (constraints.py) and
// 4b17881 (manager.py).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/json_reader.hpp"
#include "plan/mesh.hpp"
#include "sharding/partition_spec.hpp"
#include "strategies/rules/system_axes.hpp"

namespace shardsim {

// What a field holds or a name stands for: nothing, a name, or a list of these.
struct AxisRule {
  std::variant<std::monostate, std::string, std::vector<AxisRule>> value;

  [[nodiscard]] bool is_none() const { return value.index() == 0; }
  [[nodiscard]] const std::string* name() const { return std::get_if<std::string>(&value); }
  [[nodiscard]] const std::vector<AxisRule>* list() const {
    return std::get_if<std::vector<AxisRule>>(&value);
  }
  friend bool operator==(const AxisRule&, const AxisRule&) = default;
};

[[nodiscard]] AxisRule read_axis_rule(const JsonReader& json);
[[nodiscard]] Json to_json(const AxisRule& rule);
// Throws RuleError (ValueError) for a list in a list: no entry holds one.
[[nodiscard]] SpecEntry to_spec_entry(const AxisRule& rule, const Place& place);

class PartitionAxis {
 public:
  enum class Version : std::uint8_t { march_2025, later };

  // All defaults.
  explicit PartitionAxis(Version version);
  // Throws RuleError: TypeError for an unknown field, ValueError for "..." where there is no
  // default.
  PartitionAxis(Version version, const JsonReader& overrides);

  // nullptr: no such field.
  [[nodiscard]] const AxisRule* find(std::string_view field) const;
  // In the order of the class.
  [[nodiscard]] const std::vector<std::pair<std::string, AxisRule>>& fields() const {
    return fields_;
  }

 private:
  PartitionAxis(Version version, const JsonReader* overrides);
  std::vector<std::pair<std::string, AxisRule>> fields_;
};

// What the axes of a mesh are for by these fields, as "partition_axis" of the strategy gives them:
// batches are split over batch_axis, (fsdp, dp), sequences over sequence_axis, sp.
[[nodiscard]] SystemAxes axes_of_march_2025(const JsonReader& strategy, const Mesh& mesh);
[[nodiscard]] SystemAxes axes_of_partition_axis(const JsonReader& strategy, const Mesh& mesh);

}  // namespace shardsim
