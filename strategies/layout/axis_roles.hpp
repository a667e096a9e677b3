// What the axes of a mesh are for. An axis has a role by its name:
//
//   batch     data, dp, replica, dp_replicate, dcn, diloco
//   shard     fsdp, dp_shard, shard, zero, fsdp_transpose: of the batch, and its ranks hold shards
//   model     tp, model, tensor, tensor_sequence
//   context   cp, context, sequence, sp: parts of each sequence
//   stages    pp, stage, pipeline
//   experts   ep, expert, exp
//   etp       etp: the model axis of experts
//
// Rule systems have names of their own, praxis' mdl for one (rules/system_axes.hpp), which go
// before these. Any other name is given its role by the experiment, {"roles": {"x": "model"}}, or
// is named where the strategy says what is split over it: "batch_axes", "sequence_axes",
// "model_axis", "shard_axis", rules. An axis that nothing of this says a meaning of is an error,
// and so is one that the strategy has no use for: its devices would do something that nobody asked
// for.
//
// Axes of one device split nothing: any name will do.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_reader.hpp"
#include "plan/mesh.hpp"

namespace shardsim {

enum class AxisRole : std::uint8_t { batch, shard, model, context, stages, experts, etp };

[[nodiscard]] std::string_view name_of(AxisRole role);
[[nodiscard]] std::vector<std::string> axis_role_names();

// Does it say that the devices along it are replicas, which hold no shards of each other's?
[[nodiscard]] bool names_replicas(std::string_view axis);

class AxisRoles {
 public:
  AxisRoles() = default;  // by names alone
  // {"x": "model"}: these go before what names say. Throws InputError: an axis that the mesh lacks,
  // an unknown role.
  AxisRoles(const JsonReader& json, const Mesh& mesh);

  // What the experiment gives, then what a rule system says, then names.
  [[nodiscard]] std::optional<AxisRole> of(const std::string& axis) const;
  // With what a rule system says of its own names.
  [[nodiscard]] AxisRoles of_system(const std::map<std::string, AxisRole>& roles) const;
  [[nodiscard]] const std::map<std::string, AxisRole>& given() const { return given_; }

 private:
  std::map<std::string, AxisRole> given_;
  std::map<std::string, AxisRole> system_;
};

struct Strategy;

// Does the strategy say of the axis what is split over it?
[[nodiscard]] bool names_axis(const Strategy& strategy, const std::string& axis);

// Throws InputError at the mesh for an axis of more than one device that has no role and that the
// strategy does not name, and for a role that the strategy does not serve. For steps: what a
// parameter tree is split over its rules say.
void require_served_axes(const Strategy& strategy, const Mesh& mesh, const AxisRoles& given,
                         const JsonReader& mesh_json);

}  // namespace shardsim
