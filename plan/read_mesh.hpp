// A mesh as users write it: {"data": 2, "fsdp": 4}, in order, or "data=2,fsdp=4".
#pragma once

#include "base/json_reader.hpp"
#include "plan/mesh.hpp"

namespace shardsim {

inline constexpr std::int64_t most_devices = std::int64_t{1} << 31;

// Throws InputError: names that are no identifiers or come twice, sizes that are no positive
// integers, more than 2^31 devices.
[[nodiscard]] Mesh read_mesh(const JsonReader& json);
[[nodiscard]] Json mesh_to_json(const Mesh& mesh);
[[nodiscard]] std::string describe(const Mesh& mesh);  // "data=2 x fsdp=4"

}  // namespace shardsim
