// Values of a partitioned program's source as a reader knows them: their names, how they lie, and
// the argument that they come from.
//
//   values.name(7)      "the result of multiply, line 9"
//   values.layout(3)    {[4096, 1024], {{y}, {x}}}, text "[{y}, {x}]", 1.0 MiB on a device
//   values.root(12)     5: %12 is a slice of the transpose of argument 5
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "plan/mesh.hpp"
#include "stablehlo/module.hpp"

namespace shardsim::spmd {

// A tensor and the axes of each of its dimensions.
struct Layout {
  std::vector<std::int64_t> shape;
  std::vector<std::vector<AxisRef>> axes;  // major to minor
  std::int64_t element_bits = 32;

  [[nodiscard]] bool uses(const AxisRef& axis) const;
  [[nodiscard]] bool uses_all(const std::vector<AxisRef>& parts) const;
  [[nodiscard]] Bytes shard_bytes() const;  // the last shard's padding included
};

// Without `axes`; nothing where one of them is not the minor end of what splits a dimension.
[[nodiscard]] std::optional<Layout> without(const Layout& layout, const std::vector<AxisRef>& axes);
// Split over `axes` too, in the first dimension that they divide, one that is whole if there is;
// nothing where they divide none.
[[nodiscard]] std::optional<Layout> with(const Layout& layout, const std::vector<AxisRef>& axes);
[[nodiscard]] std::string text_of(const Layout& layout, const Mesh& mesh);  // "[{y}, {x}]"

class SourceValues {
 public:
  // `mesh_name`: what the source calls the mesh.
  SourceValues(const stablehlo::Function& function, const Mesh& mesh, std::string mesh_name)
      : function_(function), mesh_(mesh), mesh_name_(std::move(mesh_name)) {}

  [[nodiscard]] std::string name(stablehlo::ValueId value) const;
  // Nothing for what is no tensor or has a sharding that names no axes of the mesh.
  [[nodiscard]] std::optional<Layout> layout(stablehlo::ValueId value) const;
  [[nodiscard]] std::optional<Layout> layout(const stablehlo::FunctionResult& result) const;
  // As a program would say it, every dimension closed.
  [[nodiscard]] stablehlo::AxisSharding written(const Layout& layout) const;
  // The value that this one's elements come from without being computed with; itself, if computed.
  [[nodiscard]] stablehlo::ValueId root(stablehlo::ValueId value) const;
  [[nodiscard]] bool is_argument(stablehlo::ValueId value) const;

 private:
  [[nodiscard]] std::optional<Layout> layout(const stablehlo::TensorType& type,
                                             const stablehlo::ValueSharding& sharding) const;
  // The step of root(): -1 where there is none.
  [[nodiscard]] stablehlo::ValueId comes_from(stablehlo::ValueId value) const;
  [[nodiscard]] stablehlo::RegionId region_of(stablehlo::ValueId argument) const;

  const stablehlo::Function& function_;
  const Mesh& mesh_;
  std::string mesh_name_;
};

}  // namespace shardsim::spmd
