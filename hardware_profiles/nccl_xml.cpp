#include "hardware_profiles/nccl_xml.hpp"

#include <fmt/format.h>

#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>
#include <cctype>
#include <charconv>
#include <sstream>

namespace shardsim {
namespace {

using Element = boost::property_tree::ptree;

// PCI classes, by their leading digits.
constexpr std::string_view display_class = "0x03";
constexpr std::string_view network_class = "0x02";
constexpr std::string_view bridge_class = "0x06";
constexpr std::string_view nvswitch_class = "0x0680";

std::string attribute(const Element& element, const std::string& name) {
  return element.get("<xmlattr>." + name, std::string());
}

bool is_class(const std::string& text, std::string_view prefix) { return text.starts_with(prefix); }

class NcclXmlReader {
 public:
  explicit NcclXmlReader(const std::string& file) : file_(file) {}

  [[nodiscard]] NcclXmlNode read(const Element& system) {
    for (const auto& [tag, element] : system) {
      if (tag != "cpu") continue;
      if (node_.cpu_architecture.empty()) {
        node_.cpu_architecture = attribute(element, "arch");
        node_.cpu_vendor = attribute(element, "vendor");
      }
      read_below(element, "");
    }
    return std::move(node_);
  }

 private:
  // `bridge` is the bus of the PCIe switch above, if there is one.
  void read_below(const Element& parent, const std::string& bridge) {
    for (const auto& [tag, element] : parent) {
      if (tag == "nic") read_nic(element, bridge);
      if (tag != "pci") continue;
      const std::string kind = attribute(element, "class");
      const std::string bus = attribute(element, "busid");
      if (is_class(kind, display_class)) {
        read_gpu(element, bus, bridge);
      } else if (is_class(kind, network_class)) {
        read_network(element, bus);
      } else if (is_class(kind, bridge_class)) {
        read_below(element, bus);
      }
    }
  }

  void read_gpu(const Element& pci, const std::string& bus, const std::string& bridge) {
    NcclXmlGpu gpu;
    gpu.bus = bus;
    gpu.pcie_switch = bridge;
    const std::string rate = attribute(pci, "link_speed");
    if (!rate.empty()) gpu.lane_rate = number(rate.substr(0, rate.find(' ')), "link_speed", bus);
    if (const auto inner = pci.get_child_optional("gpu")) {
      const std::string capability = attribute(*inner, "sm");
      if (!capability.empty()) gpu.capability = whole(capability, "sm", bus);
      for (const auto& [tag, link] : *inner) {
        if (tag != "nvlink") continue;
        const int count = whole(attribute(link, "count"), "count", bus);
        if (is_class(attribute(link, "tclass"), nvswitch_class)) {
          gpu.switch_links += count;
        } else {
          gpu.gpu_links[attribute(link, "target")] += count;
        }
      }
    }
    node_.gpus.push_back(std::move(gpu));
  }

  void read_network(const Element& pci, const std::string& bus) {
    if (const auto nic = pci.get_child_optional("nic")) return read_nic(*nic, bus);
    node_.nics.push_back({bus, std::nullopt, Seconds{0}});
  }

  void read_nic(const Element& nic, const std::string& bus) {
    for (const auto& [tag, net] : nic) {
      if (tag != "net") continue;
      NcclXmlNic result;
      result.name = attribute(net, "name");
      constexpr double bytes_per_second = 1e6 / 8;  // of 1 Mb/s
      const std::string speed = attribute(net, "speed");
      if (!speed.empty()) result.speed = Bandwidth(number(speed, "speed", bus) * bytes_per_second);
      constexpr double microsecond = 1e-6;
      const std::string latency = attribute(net, "latency");
      if (!latency.empty()) result.latency = Seconds(number(latency, "latency", bus) * microsecond);
      node_.nics.push_back(std::move(result));
    }
  }

  [[nodiscard]] double number(const std::string& text, const char* what,
                              const std::string& bus) const {
    double value = 0;
    const char* const end = text.data() + text.size();
    const auto [next, status] = std::from_chars(text.data(), end, value);
    if (status != std::errc{} || next != end || !(value >= 0 && value < 1e12)) {
      throw InputError({file_, bus}, fmt::format("{} \"{}\" is not a number", what, text));
    }
    return value;
  }
  [[nodiscard]] int whole(const std::string& text, const char* what, const std::string& bus) const {
    constexpr double most = 1000;
    const double value = number(text, what, bus);
    if (value > most || value != static_cast<int>(value)) {
      throw InputError({file_, bus}, fmt::format("{} \"{}\" is out of range", what, text));
    }
    return static_cast<int>(value);
  }

  std::string file_;
  NcclXmlNode node_;
};

// The parser calls itself for every level.
void check_nesting(const std::string& xml, const std::string& file) {
  constexpr int deepest = 64;
  int depth = 0;
  for (std::size_t i = 0; i + 1 < xml.size(); ++i) {
    if (xml[i] == '<' && xml[i + 1] == '/') --depth;
    if (xml[i] == '/' && xml[i + 1] == '>') --depth;
    if (xml[i] == '<' && std::isalpha(static_cast<unsigned char>(xml[i + 1])) != 0) ++depth;
    if (depth > deepest) {
      throw InputError({file, ""}, fmt::format("is nested more than {} levels deep", deepest));
    }
  }
}

}  // namespace

NcclXmlNode read_nccl_xml(const std::string& xml, const std::string& file) {
  check_nesting(xml, file);
  std::istringstream stream(xml);
  Element document;
  try {
    boost::property_tree::read_xml(stream, document, boost::property_tree::xml_parser::no_comments);
  } catch (const boost::property_tree::xml_parser_error& error) {
    throw InputError({file, fmt::format("line {}", error.line())}, error.message());
  }
  const auto system = document.get_child_optional("system");
  if (!system) {
    throw InputError({file, ""}, "is not a topology of NCCL: it has no element <system>");
  }
  return NcclXmlReader(file).read(*system);
}

}  // namespace shardsim
