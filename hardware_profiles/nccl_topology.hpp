// A profile out of the topology that NCCL found on a node (NCCL_TOPO_DUMP_FILE) or was given
// (NCCL_TOPO_FILE, as clouds write them for their machines).
//
//   <system version="1">
//     <cpu numaid="0" arch="x86_64" vendor="GenuineIntel" ...>
//       <pci busid="0000:01:00.0" class="0x060400" ...>                       a PCIe switch
//         <pci busid="0000:02:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" ...>
//           <gpu dev="0" sm="90" ...>
//             <nvlink target="0000:c0:00.0" count="18" tclass="0x068000"/>    to an NVSwitch
//         <pci busid="0000:03:00.0" class="0x020700" ...>
//           <nic><net name="mlx5_0" speed="400000" latency="0" .../></nic>    in Mb/s and us
//
// The file knows how GPUs, NICs and CPUs are joined and how fast NICs are. It does not know the
// GPU's memory and peaks, what collectives reach of a link, and latencies: these the profile
// inherits from another (extend_profile.hpp), whose GPU it must have.
//
// From the file: devices and NICs of a node, how devices are joined (NVSwitch, NVLink between every
// two or in DGX-1's cube mesh, PCIe) and how fast (links x the bandwidth of a link of the other
// profile), what NCCL sees (compute capability, PCIe generation, GPUs on a PCIe switch, CPU,
// network latency). NICs slower than the fastest are not counted: they are for storage and
// management. What the file leaves out is inherited, too, and said. Calibrations are not: they are
// of a class of links, which the file does not tell.
#pragma once

#include <string>
#include <vector>

#include "base/json.hpp"
#include "hardware_profiles/machine.hpp"

namespace shardsim {

struct ImportedTopology {
  Json profile;                    // "extends" the other one; reads as a profile
  std::vector<std::string> notes;  // what was not in the file, or not counted
};

struct TopologyImport {
  std::string name;     // of the new profile
  std::string extends;  // a shipped profile or a path ending in .json
  std::string date;     // of the file: YYYY-MM or YYYY-MM-DD
};

// Throws InputError for text that is no XML or no topology, GPUs or NICs of several kinds, GPUs
// spread unevenly over PCIe switches, NVLinks that join some pairs only, and when the other profile
// has no NVLinks whose bandwidth could be taken.
[[nodiscard]] ImportedTopology import_nccl_topology(const std::string& xml, const std::string& file,
                                                    const TopologyImport& how);

}  // namespace shardsim
