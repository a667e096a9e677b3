// Where a device stands among the devices along some mesh axes, as eformer counts.
//
//   mesh dp=2, fsdp=3, tp=4; axes [tp, dp]: device (dp 1, fsdp 2, tp 3) has index 3 * 2 + 1 = 7
//
// The axes may come in any order, the first most major, and more than once. No axes: 0, and size 1.
//
// Source: github.com/erfanzar/eformer, eformer/escale/partition/constraints.py at 5c877a3:
// get_submesh_device_index, get_axes_size_in_mesh. Errors are RuleErrors with their types.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json_reader.hpp"
#include "plan/mesh.hpp"

namespace shardsim {

using AxisNames = std::vector<std::string>;

// "dp" or ["dp", "tp"]; TypeError for anything else.
[[nodiscard]] AxisNames read_axis_names(const JsonReader& json);

// The index of every device, devices in row-major order. NameError: an axis that the mesh lacks.
[[nodiscard]] std::vector<std::int64_t> submesh_device_index(const AxisNames& axes,
                                                             const Mesh& mesh, const Place& place);
// The product of the axes' sizes. KeyError: an axis that the mesh lacks.
[[nodiscard]] std::int64_t axes_size(const AxisNames& axes, const Mesh& mesh, const Place& place);

}  // namespace shardsim
