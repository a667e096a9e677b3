// What NCCL's topology file says of a node, read and not yet judged.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/units.hpp"

namespace shardsim {

struct NcclXmlGpu {
  std::string bus;
  std::string pcie_switch;               // bus of the bridge above; empty: at the CPU
  std::optional<int> capability;         // 90; not in files written by hand
  std::optional<double> lane_rate;       // GT/s
  std::map<std::string, int> gpu_links;  // NVLinks by the GPU's bus that they lead to
  int switch_links = 0;                  // NVLinks to NVSwitches
};

struct NcclXmlNic {
  std::string name;  // of the network device, else the bus
  std::optional<Bandwidth> speed;
  Seconds latency{0};
};

struct NcclXmlNode {
  std::string cpu_architecture;  // "x86_64", "arm64"
  std::string cpu_vendor;        // "GenuineIntel"
  std::vector<NcclXmlGpu> gpus;  // in the order of the file
  std::vector<NcclXmlNic> nics;
};

// Throws InputError for text that is no XML, has no <system> or has numbers that are none.
[[nodiscard]] NcclXmlNode read_nccl_xml(const std::string& xml, const std::string& file);

}  // namespace shardsim
