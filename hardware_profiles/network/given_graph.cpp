#include "hardware_profiles/network/given_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "base/index.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "hardware_profiles/network/topologies.hpp"

namespace shardsim {
namespace {

constexpr std::int64_t largest_count = std::int64_t{1} << 40;  // more is no number of things

void check_nodes(std::int64_t nodes, const JsonReader& reader) {
  if (nodes > most_nodes) {
    reader.fail(fmt::format("{} nodes are more than the {} that are simulated one by one", nodes,
                            most_nodes));
  }
}

// Whether a name is what a pattern with * describes.
bool matches(std::string_view pattern, std::string_view name) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == name;
  if (!name.starts_with(pattern.substr(0, star))) return false;
  const std::string_view rest = pattern.substr(star + 1);
  for (std::size_t end = star; end <= name.size(); ++end) {
    if (matches(rest, name.substr(end))) return true;
    if (end < name.size() && name[end] == '.') return false;
  }
  return false;
}

// What a list of nodes and links has by name: the graph as a whole, or one unit.
struct Node {
  std::string name;
  bool is_device = false;
};

class Nodes {
 public:
  void add(Node node, const JsonReader& reader) {
    if (!numbers_.emplace(node.name, nodes_.size()).second) {
      reader.fail(fmt::format("two nodes are named \"{}\"", node.name));
    }
    nodes_.push_back(std::move(node));
    check_nodes(static_cast<std::int64_t>(nodes_.size()), reader);
  }

  // A list of names.
  void add_list(const JsonReader& list, bool is_device) {
    for (const JsonReader& entry : list.elements()) {
      if (entry.is_string()) {
        add({checked_name(entry), is_device}, entry);
        continue;
      }
      entry.only_keys({"name", "count"});
      const std::string name = checked_name(entry.at("name"));
      const std::int64_t count = entry.at("count").integer(1, largest_count);
      check_nodes(count, entry.at("count"));
      for (std::int64_t i = 0; i < count; ++i) {
        add({fmt::format("{}{}", name, i), is_device}, entry);
      }
    }
  }

  static std::string checked_name(const JsonReader& reader) {
    std::string name = reader.string();
    if (name.empty()) reader.fail("is empty");
    if (name.find_first_of("*.") != std::string::npos) {
      reader.fail(fmt::format("\"{}\": a name has no * and no dot", name));
    }
    return name;
  }

  [[nodiscard]] std::vector<std::size_t> matching(const JsonReader& reader) const {
    const std::string pattern = reader.string();
    std::vector<std::size_t> found;
    if (pattern.find('*') == std::string::npos) {
      const auto node = numbers_.find(pattern);
      if (node != numbers_.end()) found.push_back(node->second);
    } else {
      for (std::size_t i = 0; i < nodes_.size(); ++i) {
        if (matches(pattern, nodes_[i].name)) found.push_back(i);
      }
    }
    if (found.empty()) fail_unknown(pattern, reader);
    return found;
  }

  [[nodiscard]] const std::vector<Node>& list() const { return nodes_; }

 private:
  [[noreturn]] void fail_unknown(const std::string& pattern, const JsonReader& reader) const {
    if (pattern.find('*') != std::string::npos) {
      reader.fail(fmt::format("no node is named like \"{}\"", pattern));
    }
    std::vector<std::string> names;
    for (const Node& node : nodes_) names.push_back(node.name);
    reader.fail(fmt::format("unknown node \"{}\"", pattern), closest(pattern, names));
  }

  std::vector<Node> nodes_;
  std::unordered_map<std::string, std::size_t> numbers_;
};

// A link between two nodes of a list, and which entry of the file it comes from.
struct GivenLink {
  std::size_t from = 0;
  std::size_t to = 0;
  Wire wire;
  std::size_t entry = 0;
};

Wire read_wire(const JsonReader& reader) {
  const auto quantity = [&](const char* key) {
    const JsonReader value = reader.at(key);
    return value.is_number() ? value.json().dump() : value.string();
  };
  const JsonReader bandwidth = reader.at("bandwidth");
  Wire wire{parse_bandwidth(quantity("bandwidth"), bandwidth.place()),
            parse_seconds(quantity("latency"), reader.at("latency").place())};
  if (!(wire.bandwidth > Bandwidth(0))) bandwidth.fail("must be more than zero");
  if (const auto count = reader.find("count")) {
    wire.bandwidth = wire.bandwidth * static_cast<double>(count->integer(1, largest_count));
  }
  return wire;
}

class GraphReader {
 public:
  explicit GraphReader(const JsonReader& reader) : reader_(reader) {}

  GivenGraph read() {
    reader_.only_keys({"devices", "switches", "units", "links", "devices_forward"});
    read_nodes(reader_, nodes_);
    if (const auto units = reader_.find("units")) {
      for (const JsonReader& unit : units->elements()) add_unit(unit);
    }
    read_links(reader_, nodes_, links_);
    check_twice();
    return numbered();
  }

 private:
  static void read_nodes(const JsonReader& reader, Nodes& nodes) {
    if (const auto devices = reader.find("devices")) nodes.add_list(*devices, /*is_device=*/true);
    if (const auto switches = reader.find("switches")) {
      nodes.add_list(*switches, /*is_device=*/false);
    }
  }

  void read_links(const JsonReader& reader, const Nodes& nodes, std::vector<GivenLink>& links) {
    const auto list = reader.find("links");
    if (!list) return;
    for (const JsonReader& entry : list->elements()) {
      entry.only_keys({"from", "to", "bandwidth", "latency", "count", "one_way"});
      const auto from = nodes.matching(entry.at("from"));
      const auto to = nodes.matching(entry.at("to"));
      const Wire wire = read_wire(entry);
      const auto one_way = entry.find("one_way");
      const bool both_ways = !(one_way && one_way->boolean());
      const bool is_mesh = from == to;  // every pair once
      const std::size_t before = links.size();
      for (const std::size_t a : from) {
        for (const std::size_t b : to) {
          if (a == b) continue;
          check_links(links.size() + 1, entry);
          links.push_back({a, b, wire, entries_.size()});
          if (both_ways && !is_mesh) links.push_back({b, a, wire, entries_.size()});
        }
      }
      if (links.size() == before) entry.fail("joins a node with itself");
      entries_.push_back(entry);
    }
  }

  // As often as its count says, each with its nodes behind those that are there.
  void add_unit(const JsonReader& reader) {
    reader.only_keys({"name", "count", "devices", "switches", "links"});
    const std::string name = Nodes::checked_name(reader.at("name"));
    Nodes nodes;
    std::vector<GivenLink> links;
    read_nodes(reader, nodes);
    read_links(reader, nodes, links);
    const auto count = reader.find("count");
    const std::int64_t copies = count ? count->integer(1, largest_count) : 1;
    if (count) {
      check_nodes(copies, *count);
      check_nodes(copies * static_cast<std::int64_t>(nodes.list().size()), *count);
      check_links(at(copies) * links.size(), *count);
    }
    for (std::int64_t copy = 0; copy < copies; ++copy) {
      const std::size_t first = nodes_.list().size();
      const std::string prefix = count ? fmt::format("{}{}", name, copy) : name;
      for (const Node& node : nodes.list()) {
        nodes_.add({fmt::format("{}.{}", prefix, node.name), node.is_device}, reader);
      }
      for (const GivenLink& link : links) {
        links_.push_back({first + link.from, first + link.to, link.wire, link.entry});
      }
    }
  }

  static void check_links(std::size_t links, const JsonReader& reader) {
    if (links > at(most_links)) {
      reader.fail(fmt::format("more than the {} links that are simulated one by one", most_links));
    }
  }

  void check_twice() const {
    std::vector<GivenLink> links = links_;
    std::sort(links.begin(), links.end(), [](const GivenLink& a, const GivenLink& b) {
      return std::tuple(a.from, a.to, a.entry) < std::tuple(b.from, b.to, b.entry);
    });
    const auto twice = std::adjacent_find(
        links.begin(), links.end(),
        [](const GivenLink& a, const GivenLink& b) { return a.from == b.from && a.to == b.to; });
    if (twice == links.end()) return;
    entries_[(twice + 1)->entry].fail(
        fmt::format("the link from \"{}\" to \"{}\" is given twice; \"count\" makes it several "
                    "wires",
                    nodes_.list()[twice->from].name, nodes_.list()[twice->to].name));
  }

  // With nodes in the order of a network: devices, then switches.
  GivenGraph numbered() const {
    GivenGraph graph;
    std::vector<NodeId> ids(nodes_.list().size());
    for (const bool is_device : {true, false}) {
      for (std::size_t i = 0; i < ids.size(); ++i) {
        if (nodes_.list()[i].is_device != is_device) continue;
        ids[i] = static_cast<NodeId>(graph.names.size());
        graph.names.push_back(nodes_.list()[i].name);
      }
      if (is_device) graph.devices = static_cast<std::int64_t>(graph.names.size());
    }
    if (graph.devices == 0) reader_.fail("has no devices");
    for (const GivenLink& link : links_) {
      graph.links.push_back({ids[link.from], ids[link.to], link.wire});
    }
    if (const auto forward = reader_.find("devices_forward")) {
      graph.devices_forward = forward->boolean();
    }
    return graph;
  }

  const JsonReader& reader_;
  Nodes nodes_;
  std::vector<GivenLink> links_;
  std::vector<JsonReader> entries_;  // of links
};

}  // namespace

GivenGraph read_graph(const JsonReader& reader) {
  GivenGraph graph = GraphReader(reader).read();
  (void)build(graph, reader.place());  // says what is not joined
  return graph;
}

NetworkGraph build(const GivenGraph& given, const Place& place) {
  NetworkBuilder builder(static_cast<NodeId>(given.devices));
  builder.add_switches(static_cast<std::int64_t>(given.names.size()) - given.devices);
  for (const NetworkLink& link : given.links) {
    builder.connect_one_way(link.from, link.to, link.wire);
  }
  if (given.devices_forward) builder.let_devices_forward();
  return std::move(builder).freeze(place, [&](NodeId node) { return given.names[at(node)]; });
}

}  // namespace shardsim
