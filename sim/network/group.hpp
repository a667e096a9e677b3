// Where the ranks of a group are on a network written in place: what algorithms may know of it.
//
// Devices are positions of the mesh, row-major. A collective over axes goes over spans of devices,
// each of a size and a stride; spans that follow each other are one.
//
// Example: torus 4x4x4, mesh {a: 4, b: 16}. Groups of b: 16 devices of stride 1, which are the last
// two dimensions: {4, 4}. Groups of a: 4 of stride 16, the first: {4}.
#pragma once

#include "hardware_profiles/network/network_text.hpp"
#include "plan/plan.hpp"
#include "sim/network/algorithms.hpp"

namespace shardsim::network {

// Groups that are listed, not given by axes, are taken to be anywhere.
[[nodiscard]] GroupOnNetwork group_on(const NetworkDescription& network, const Mesh& mesh,
                                      const Collective& collective);

}  // namespace shardsim::network
