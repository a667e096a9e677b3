// Where the ranks of a group are on a network: what algorithms may know of it.
//
// Of networks written in place; of machines with a profile machine_flows.hpp says it.
//
// Devices are positions of the mesh, row-major. A collective over axes goes over spans of devices,
// each of a size and a stride; spans that follow each other are one.
//
// Example: torus 4x4x4, mesh {a: 4, b: 16}. Groups of b: 16 devices of stride 1, which are the last
// two dimensions: {4, 4}. Groups of a: 4 of stride 16, the first: {4}.
#pragma once

#include <cstdint>
#include <string>

#include "hardware_profiles/network/network_text.hpp"
#include "plan/plan.hpp"
#include "sim/network/phases.hpp"

namespace shardsim::network {

// What is known of where the ranks of a group are.
struct GroupOnNetwork {
  std::int64_t ranks = 1;
  NetworkKind kind = NetworkKind::ring;
  bool wraps = true;
  Shape dimensions;           // of a torus that it fills, row-major; empty: it does not
  std::int64_t per_leaf = 1;  // ranks that follow each other under one leaf; 1: no such leaves
  // What switches lack to take part: "a group over several nodes"; empty: nothing.
  std::string collnet_lacks = {};
  std::string nvls_tree_lacks = {};
};

// Groups that are listed, not given by axes, are taken to be anywhere.
[[nodiscard]] GroupOnNetwork group_on(const NetworkDescription& network, const Mesh& mesh,
                                      const Collective& collective);

}  // namespace shardsim::network
