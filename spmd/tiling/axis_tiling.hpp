// Shardings over named axes as tilings of devices.
//
//   mesh x=2, y=4; [{"y"}, {}]   ->   {devices=[4,1,2] 0,4, 1,5, 2,6, 3,7}
#pragma once

#include <vector>

#include "spmd/tiling/tiling.hpp"
#include "stablehlo/module.hpp"

namespace shardsim::spmd {

// The devices of a mesh, or, inside a manual computation, of the groups that share the manual axes:
// places 0..n-1 within a group.
struct DeviceMesh {
  std::vector<stablehlo::ProgramAxis> axes;
  std::vector<int> devices;  // the last axis varies fastest

  [[nodiscard]] int size() const { return static_cast<int>(devices.size()); }
};

[[nodiscard]] DeviceMesh device_mesh(const stablehlo::ProgramMesh& mesh);
// One prime factor of an axis: a digit of the device number.
struct AxisDigit {
  std::size_t axis = 0;
  std::int64_t pre_size = 1;  // product of the factors more major
  std::int64_t size = 1;
};
// Major to minor; none where devices are numbered in another order than the mesh.
[[nodiscard]] std::vector<AxisDigit> axis_digits(const DeviceMesh& mesh);

// Without the axes named: places in a group, and the groups in the devices of `mesh`.
[[nodiscard]] DeviceMesh without_axes(const DeviceMesh& mesh, const std::vector<std::string>& axes,
                                      DeviceGroups& groups);
// Axes that the mesh does not have (manual ones) do not split. Throws InputError at `place` for
// parts of axes that do not divide.
[[nodiscard]] Tiling tiling_of(const DeviceMesh& mesh, const stablehlo::AxisSharding& sharding,
                               std::size_t rank, const Place& place);

}  // namespace shardsim::spmd
