// A user's own graph: devices and switches by name, and what joins them. Read from a profile:
//
//   "graph": {
//     "units": [{"name": "host", "count": 4,
//                "devices": [{"name": "gpu", "count": 8}],
//                "switches": ["nvswitch", {"name": "nic", "count": 8}],
//                "links": [{"from": "gpu*", "to": "nvswitch", "bandwidth": "450 GB/s",
//                           "latency": "500 ns"},
//                          {"from": "gpu0", "to": "nic0", "bandwidth": "50 GB/s",
//                           "latency": "0 s"},
//                          ...]}],
//     "switches": [{"name": "rail", "count": 8}],
//     "links": [{"from": "host*.nic0", "to": "rail0", "bandwidth": "50 GB/s", "latency": "1 us"},
//               ...]
//   }
//
// is 32 devices, host0.gpu0 to host3.gpu7.
//
//   nodes    "devices" and "switches" are lists of names; one with a count stands for NAME0, NAME1
//            and so on. A "units" entry is a group of nodes with links of their own, as often as
//            its count says; outside of it its nodes are UNIT.NODE. Devices are numbered as they
//            come: the graph's own, then those of each unit.
//   links    join each node that "from" matches with each that "to" matches, in both directions, or
//            from the one to the other for "one_way": true. A * stands for any characters but a
//            dot. A node is not joined with itself: "gpu*" with "gpu*" is a full mesh. "count": 4
//            is a trunk of four wires: one link of four times the bandwidth.
//
// "devices_forward": true says that devices pass on what is not for them, as they do where there
// are no switches. Of ways that are as short the target's number chooses (routes.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json_reader.hpp"
#include "hardware_profiles/network/network_graph.hpp"

namespace shardsim {

struct GivenGraph {
  std::vector<std::string> names;  // of nodes: devices, then switches
  std::int64_t devices = 0;
  std::vector<NetworkLink> links;
  bool devices_forward = false;
};

// Throws InputError with its place: an unknown node (with a suggestion), a name or a link given
// twice, a link without bandwidth or with a latency below zero, a device that does not reach
// another one, no devices, and more nodes or links than topologies.hpp allows.
[[nodiscard]] GivenGraph read_graph(const JsonReader& reader);

[[nodiscard]] NetworkGraph build(const GivenGraph& given, const Place& place);

}  // namespace shardsim
