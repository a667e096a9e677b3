// Which device stands where in the mesh, as users write it (sim/collectives/device_order.hpp):
//
//   "jax"             mesh_utils.create_device_mesh
//   "row-major"       torch's init_device_mesh
//   "megatron"        Megatron-LM's default, tp-cp-ep-dp-pp
//   "tp-cp-dp-pp"     an order of axes, the fastest first; also as a list, ["tp", "cp", "dp", "pp"]
//   [0, 2, 1, 3]      the device of every position; or a file that holds such a list, "order.json"
#pragma once

#include <cstdint>
#include <string>

#include "base/json_reader.hpp"
#include "sim/collectives/device_order.hpp"

namespace shardsim {

// Files are relative to `directory`. Throws InputError; whether the order suits the mesh is for
// check_device_order.
[[nodiscard]] DeviceOrder read_placement(const JsonReader& json, const std::string& directory);

// How many slices of TPUs: 2, or by axis of the mesh that goes over them, {"data": 2} or "data=2",
// as the dcn_mesh_shape of mesh_utils.create_hybrid_device_mesh. Writes the axes into `order`.
// Throws InputError.
[[nodiscard]] std::int64_t read_slices(const JsonReader& json, DeviceOrder& order);

}  // namespace shardsim
