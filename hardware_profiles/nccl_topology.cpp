#include "hardware_profiles/nccl_topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/index.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "hardware_profiles/nccl_xml.hpp"
#include "hardware_profiles/profile_io.hpp"

namespace shardsim {
namespace {

// Of one lane, by PCIe generation.
constexpr std::array pcie_rates = {2.5, 5.0, 8.0, 16.0, 32.0, 64.0};  // GT/s

class TopologyImporter {
 public:
  TopologyImporter(const NcclXmlNode& node, const std::string& file, const TopologyImport& how)
      : node_(node), place_{file, ""}, how_(how), base_(load_profile(how.extends, place_)) {}

  [[nodiscard]] ImportedTopology import() {
    if (!std::holds_alternative<ClusterProfile>(base_.network)) {
      throw InputError(place_, fmt::format("{} is no cluster, which a topology of NCCL is part of",
                                           how_.extends));
    }
    if (node_.gpus.empty()) throw InputError(place_, "has no GPU");
    const auto devices = static_cast<std::int64_t>(node_.gpus.size());
    cluster_["devices_per_node"] = number(devices, "GPUs");
    // Hosts of another machine: every host has a file of its own.
    cluster_["devices_per_host"] = nullptr;
    add_fabric();
    add_nics();
    add_nccl();
    Json profile{{"schema", "shardsim/profile/1"},
                 {"name", how_.name},
                 {"title", fmt::format("{} x {}, imported from {}", devices, base_.device.name,
                                       place_.file)},
                 {"extends", how_.extends},
                 {"cluster", cluster_}};
    if (!base_.calibrations.empty()) {
      profile["calibration"] = nullptr;
      notes_.push_back(
          fmt::format("the calibrations of {} are of its links and left out", how_.extends));
    }
    (void)read_profile(profile, place_.file);
    return {std::move(profile), std::move(notes_)};
  }

 private:
  [[nodiscard]] Json number(const Json& value, const std::string& what,
                            const std::string& kind = "measured") const {
    return {{"value", value},
            {"kind", kind},
            {"date", how_.date},
            {"source", fmt::format("NCCL topology {}: {}", place_.file, what)}};
  }

  void inherit(const std::string& what) {
    notes_.push_back(fmt::format("{} not in the file, taken from {}", what, how_.extends));
  }

  [[nodiscard]] const ClusterProfile& base_cluster() const {
    return std::get<ClusterProfile>(base_.network);
  }

  void add_fabric() {
    const NcclXmlGpu& first = node_.gpus.front();
    int links = first.switch_links;
    for (const auto& [target, count] : first.gpu_links) links += count;
    for (const NcclXmlGpu& gpu : node_.gpus) {
      int own = gpu.switch_links;
      for (const auto& [target, count] : gpu.gpu_links) own += count;
      if (own != links) {
        throw InputError(place_, fmt::format("GPUs {} and {} have {} and {} NVLinks", first.bus,
                                             gpu.bus, links, own));
      }
    }
    const bool is_dump = first.capability.has_value();
    if (links == 0 && !is_dump) return inherit("how GPUs are joined is");
    const Fabric fabric = fabric_of(links);
    Json& scale_up = cluster_["scale_up"];
    scale_up["fabric"] = number(name_of(fabric), "NVLinks of each GPU");
    if (links == 0) {
      if (base_cluster().scale_up.fabric.value == Fabric::pcie) return;
      throw InputError(place_, fmt::format("its GPUs are joined by PCIe alone, but those of {} are "
                                           "not: their bandwidth is not known",
                                           how_.extends));
    }
    const auto& nccl = base_cluster().nccl;
    if (!nccl || !nccl->nvlink_bandwidth) {
      throw InputError(place_, fmt::format("{} does not say what an NVLink carries, of which each "
                                           "GPU has {}",
                                           how_.extends, links));
    }
    const Bandwidth link = nccl->nvlink_bandwidth->value;
    scale_up["bandwidth"] =
        number(fmt::format("{} GB/s", link.count() * links / 1e9),
               fmt::format("{} NVLinks of {} ({})", links, format_bandwidth(link), how_.extends),
               "derived");
  }

  [[nodiscard]] Fabric fabric_of(int links) const {
    if (links == 0) return Fabric::pcie;
    if (node_.gpus.front().switch_links > 0) return Fabric::nvswitch;
    std::set<int> counts;  // of links between two
    bool cube = node_.gpus.size() == cube_mesh_links.size();
    for (std::size_t a = 0; a < node_.gpus.size(); ++a) {
      for (std::size_t b = 0; b < node_.gpus.size(); ++b) {
        if (a == b) continue;
        counts.insert(links_between(a, b));
        cube = cube && links_between(a, b) == cube_mesh_links[a][b];
      }
    }
    if (counts.size() <= 1) return Fabric::nvlink;
    if (cube) return Fabric::cube_mesh;
    throw InputError(place_, "its NVLinks join some pairs of GPUs only, and not as in a DGX-1");
  }

  [[nodiscard]] int links_between(std::size_t a, std::size_t b) const {
    const auto& links = node_.gpus[a].gpu_links;
    const auto found = links.find(node_.gpus[b].bus);
    return found == links.end() ? 0 : found->second;
  }

  void add_nics() {
    std::optional<Bandwidth> fastest;
    for (const NcclXmlNic& nic : node_.nics) {
      if (nic.speed && (!fastest || *fastest < *nic.speed)) fastest = nic.speed;
    }
    if (!fastest) return add_nics_without_speed();
    std::int64_t count = 0;
    Seconds latency{0};
    for (const NcclXmlNic& nic : node_.nics) {
      if (nic.speed == fastest) {
        ++count;
        latency = std::max(latency, nic.latency);
      } else {
        notes_.push_back(
            fmt::format("network device {} is slower than others and not counted", nic.name));
      }
    }
    cluster_["scale_out"] = {
        {"nics_per_node", number(count, "network devices of the highest speed")},
        {"bandwidth",
         number(fmt::format("{} GB/s", fastest->count() / 1e9), "speed of these network devices")},
        {"switches", nullptr}};
    if (latency > Seconds{0}) {
      cluster_["nccl"]["network_latency"] =
          number(fmt::format("{:g} us", latency.count() * 1e6), "latency of these network devices");
    }
  }

  void add_nics_without_speed() {
    if (node_.nics.empty()) {
      cluster_["scale_out"] = nullptr;
      notes_.emplace_back("it has no NICs: the profile has no network between nodes");
      return;
    }
    cluster_["scale_out"] = {{"nics_per_node", number(static_cast<std::int64_t>(node_.nics.size()),
                                                      "PCI devices of a network's class")},
                             {"switches", nullptr}};
    inherit("the speed of its NICs is");
  }

  void add_nccl() {
    Json& nccl = cluster_["nccl"];
    const NcclXmlGpu& first = node_.gpus.front();
    const auto all_alike = [&](auto member, const char* what) {
      for (const NcclXmlGpu& gpu : node_.gpus) {
        if (gpu.*member != first.*member) {
          throw InputError(place_,
                           fmt::format("GPUs {} and {} differ in {}", first.bus, gpu.bus, what));
        }
      }
    };
    all_alike(&NcclXmlGpu::capability, "sm");
    all_alike(&NcclXmlGpu::lane_rate, "link_speed");
    if (first.capability) {
      constexpr double digits = 10;
      nccl["compute_capability"] = number(*first.capability / digits, "sm of its GPUs");
    } else {
      inherit("the compute capability of its GPUs is");
    }
    const auto* const rate = first.lane_rate
                                 ? std::find(pcie_rates.begin(), pcie_rates.end(), *first.lane_rate)
                                 : pcie_rates.end();
    if (rate != pcie_rates.end()) {
      nccl["pcie_generation"] = number(rate - pcie_rates.begin() + 1, "link_speed of its GPUs");
    } else {
      inherit("the speed of PCIe is");
    }
    nccl["gpus_per_pcie_switch"] = number(gpus_per_switch(), "PCI bridges above its GPUs");
    add_cpu(nccl);
  }

  [[nodiscard]] std::int64_t gpus_per_switch() const {
    std::map<std::string, std::int64_t> below;
    for (const NcclXmlGpu& gpu : node_.gpus) {
      if (!gpu.pcie_switch.empty()) ++below[gpu.pcie_switch];
    }
    if (below.empty()) return 1;
    const std::int64_t each = below.begin()->second;
    for (const auto& [bridge, count] : below) {
      if (count != each || at(each) * below.size() != node_.gpus.size()) {
        throw InputError(place_, "its GPUs are spread unevenly over PCIe switches");
      }
    }
    return each;
  }

  void add_cpu(Json& nccl) {
    std::string cpu;
    const std::string& architecture = node_.cpu_architecture;
    if (architecture == "x86_64") cpu = node_.cpu_vendor == "AuthenticAMD" ? "amd" : "intel";
    if (architecture == "arm64" || architecture == "aarch64") cpu = "arm";
    if (architecture == "ppc64" || architecture == "ppc64le") cpu = "power";
    if (cpu.empty()) return inherit("the kind of its CPUs is");
    nccl["cpu"] = number(cpu, "arch and vendor of its CPUs");
  }

  const NcclXmlNode& node_;
  Place place_;
  const TopologyImport& how_;
  Profile base_;
  Json cluster_ = Json::object();
  std::vector<std::string> notes_;
};

}  // namespace

ImportedTopology import_nccl_topology(const std::string& xml, const std::string& file,
                                      const TopologyImport& how) {
  return TopologyImporter(read_nccl_xml(xml, file), file, how).import();
}

}  // namespace shardsim
