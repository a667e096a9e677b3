// Shardings with their axes looked up in the mesh: what propagation computes with, between reading
// a program's annotations and writing its own.
//
//   mesh @m = <["x"=2, "y"=4]>      <@m, [{"x", ?}, {"y":(1)2}]>
//     dims {{axes {{0, 1, 2}}, open}, {axes {{1, 1, 2}}, closed}}
//
// Axes of size 1 split nothing and are left out. Meshes with the same axes and devices are one.
#pragma once

#include <optional>
#include <vector>

#include "base/error.hpp"
#include "spmd/tiling/axes.hpp"
#include "stablehlo/module.hpp"

namespace shardsim::spmd {

struct DimensionAxes {
  Axes axes;
  bool open = true;  // may get more
  friend bool operator==(const DimensionAxes&, const DimensionAxes&) = default;
};

struct TensorSharding {
  int mesh = 0;  // in the module
  std::vector<DimensionAxes> dimensions;
  Axes replicated;
  Axes unreduced;

  [[nodiscard]] bool splits_nothing() const;
  friend bool operator==(const TensorSharding&, const TensorSharding&) = default;
};

// One that says nothing yet: all dimensions open.
[[nodiscard]] TensorSharding open_sharding(int mesh, std::size_t rank);

class Meshes {
 public:
  explicit Meshes(const stablehlo::Module& module);

  // Throws InputError: a mesh or an axis that is not there, an axis used twice, a part that is none
  // of its axis, a rank other than that of the tensor.
  [[nodiscard]] TensorSharding resolve(const stablehlo::AxisSharding& sharding, std::size_t rank,
                                       const Place& place) const;
  // Of manual_axes={...}, sorted as in the mesh.
  [[nodiscard]] std::vector<int> resolve_names(const std::vector<std::string>& names, int mesh,
                                               const Place& place) const;
  // With closed dimensions.
  [[nodiscard]] stablehlo::AxisSharding text_form(const TensorSharding& sharding) const;
  [[nodiscard]] bool is_whole(const Axis& axis, int mesh) const;
  // A mesh without axes: it agrees with any other.
  [[nodiscard]] bool is_empty(int mesh) const;
  // The mesh that all of them are over, if there is one; null entries say nothing.
  [[nodiscard]] std::optional<int> common(const std::vector<const TensorSharding*>& all) const;

 private:
  [[nodiscard]] int find(const std::string& name, const Place& place) const;
  [[nodiscard]] Axis resolve(const stablehlo::AxisPart& part, int mesh, const Place& place) const;
  [[nodiscard]] Axes resolve(const std::vector<stablehlo::AxisPart>& parts, int mesh,
                             const Place& place, Axes& used) const;
  [[nodiscard]] std::vector<stablehlo::AxisPart> text_form(const Axes& axes, int mesh) const;

  std::vector<stablehlo::ProgramMesh> meshes_;
  std::vector<int> same_as_;  // the first mesh that is equal
};

}  // namespace shardsim::spmd
