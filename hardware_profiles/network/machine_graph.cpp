#include "hardware_profiles/network/machine_graph.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/index.hpp"
#include "hardware_profiles/network/node_names.hpp"

namespace shardsim {
namespace {

constexpr Seconds no_latency{0};

NodeId id(std::int64_t number) { return static_cast<NodeId>(number); }

// Devices without names of their own, and switches with.
class NamedBuilder {
 public:
  explicit NamedBuilder(std::int64_t devices) : devices_(devices), builder(id(devices)) {}

  NodeId add_switch(std::string name) {
    names_.push_back(std::move(name));
    return builder.add_switches(1);
  }

  [[nodiscard]] NodeId nodes() const {
    return static_cast<NodeId>(devices_ + static_cast<std::int64_t>(names_.size()));
  }

  [[nodiscard]] MachineGraph freeze(const Place& place,
                                    const std::function<std::string(NodeId)>& device_name) && {
    MachineGraph result;
    result.name = [devices = devices_, names = std::move(names_), device_name](NodeId node) {
      return node < devices ? device_name(node) : names[at(node - devices)];
    };
    result.graph = std::move(builder).freeze(place, result.name);
    return result;
  }

 private:
  std::int64_t devices_;
  std::vector<std::string> names_;

 public:
  NetworkBuilder builder;
};

class ClusterWires {
 public:
  ClusterWires(const Machine& machine, const ClusterProfile& cluster)
      : machine_(machine),
        cluster_(cluster),
        per_node_(std::min(cluster.devices_per_node.value, machine.devices)),
        named_(machine.devices) {}

  MachineGraph graph(const Place& place) && {
    for (std::int64_t node = 0; node < machine_.nodes; ++node) join_inside(node);
    const NodeId first_outside = named_.nodes();
    if (machine_.nodes > 1) join_nodes();
    MachineGraph result =
        std::move(named_).freeze(place, [](NodeId node) { return fmt::format("device {}", node); });
    result.assumptions = std::move(assumptions_);
    result.nvswitches = std::move(nvswitches_);
    result.first_outside = first_outside;
    return result;
  }

 private:
  [[nodiscard]] std::string in_node(std::int64_t node, const std::string& what) const {
    return machine_.nodes == 1 ? what : fmt::format("node {} {}", node, what);
  }

  // The devices of one node.
  void join_inside(std::int64_t node) {
    const LinkProfile& link = cluster_.scale_up;
    const Bandwidth all = link.bandwidth.value * link.efficiency.value;
    const std::int64_t first = node * per_node_;
    switch (cluster_.scale_up.fabric.value) {
      case Fabric::nvswitch:
        nvswitches_.push_back(join_at_switch(node, "NVSwitch", {all, link.latency.value / 2}));
        return;
      case Fabric::pcie:
        join_over_pcie(node, {all, link.latency.value / 2});
        return;
      case Fabric::nvlink:
      case Fabric::xgmi: {
        const auto others = static_cast<double>(cluster_.devices_per_node.value - 1);
        for_pairs([&](std::int64_t a, std::int64_t b) {
          named_.builder.connect(id(first + a), id(first + b), {all / others, link.latency.value});
        });
        return;
      }
      case Fabric::cube_mesh:
        named_.builder.let_devices_forward();
        for_pairs([&](std::int64_t a, std::int64_t b) {
          const int links = cube_mesh_links[at(a)][at(b)];
          if (links == 0) return;
          const Bandwidth part = all * (links / double{cube_mesh_links_of_a_device});
          named_.builder.connect(id(first + a), id(first + b), {part, link.latency.value});
        });
    }
  }

  template <class Join>
  void for_pairs(Join join) const {
    for (std::int64_t a = 0; a < per_node_; ++a) {
      for (std::int64_t b = a + 1; b < per_node_; ++b) join(a, b);
    }
  }

  NodeId join_at_switch(std::int64_t node, const char* what, const Wire& wire) {
    const NodeId hub = named_.add_switch(in_node(node, what));
    for (std::int64_t i = 0; i < per_node_; ++i) {
      named_.builder.connect(id(node * per_node_ + i), hub, wire);
    }
    return hub;
  }

  void join_over_pcie(std::int64_t node, const Wire& wire) {
    const std::int64_t shared_by = cluster_.nccl ? cluster_.nccl->gpus_per_pcie_switch.value : 1;
    if (shared_by == 1 || shared_by >= per_node_) {
      join_at_switch(node, "PCIe", wire);
      return;
    }
    assume("the way up from a PCIe switch is as wide as that to one device");
    const NodeId host = named_.add_switch(in_node(node, "host"));
    NodeId hub = host;
    for (std::int64_t i = 0; i < per_node_; ++i) {
      if (i % shared_by == 0) {
        hub = named_.add_switch(in_node(node, fmt::format("PCIe switch {}", i / shared_by)));
        named_.builder.connect(hub, host, {wire.bandwidth, no_latency});
      }
      named_.builder.connect(id(node * per_node_ + i), hub, wire);
    }
  }

  // A switch between nodes, and what leads to it from below.
  struct Switch {
    NodeId node = 0;
    Bandwidth down{0};
  };
  // By tier: number of the group of nodes that it serves, and rail where rails are apart.
  using Switches = std::map<std::pair<std::int64_t, std::int64_t>, Switch>;

  void join_nodes() {
    const ScaleOutProfile& out = *cluster_.scale_out;
    const WaysOut ways = ways_out(cluster_);
    const Bandwidth nic = ways.bandwidth * out.efficiency.value;
    const auto& switches = out.switches;
    const bool rails = ways.per_node > 1 && (!switches || switches->rails.value);
    if (!switches) {
      assume(rails ? "between nodes a switch for every rail, and rails joined at full bandwidth: "
                     "the profile does not say"
                   : "between nodes one switch: the profile does not say");
    }
    const std::int64_t nodes_of_leaf = switches ? switches->leaf.nodes.value : machine_.nodes;
    Switches leaves;
    for (std::int64_t way = 0; way < machine_.nodes * ways.per_node; ++way) {
      const std::int64_t node = way / ways.per_node;
      const std::int64_t unit = node / nodes_of_leaf;
      const std::int64_t rail = rails ? way % ways.per_node : 0;
      const NodeId port = add_nic(node, way % ways.per_node, ways, nic);
      const auto [leaf, is_new] = leaves.try_emplace({unit, rail});
      if (is_new)
        leaf->second.node = named_.add_switch(leaf_name(rails, unit, rail, nodes_of_leaf));
      leaf->second.down += nic;
      named_.builder.connect(port, leaf->second.node, {nic, out.latency.value / 2});
    }
    join_leaves(leaves, nodes_of_leaf);
  }

  NodeId add_nic(std::int64_t node, std::int64_t way, const WaysOut& ways, Bandwidth bandwidth) {
    const std::int64_t nics = cluster_.scale_out->nics_per_node.value / ways.per_node;
    const NodeId port = named_.add_switch(
        in_node(node, nics == 1 ? fmt::format("NIC {}", way)
                                : fmt::format("NICs {}-{}", way * nics, (way + 1) * nics - 1)));
    const std::int64_t devices = per_node_ / ways.per_node;
    for (std::int64_t i = 0; i < devices; ++i) {
      const std::int64_t device = node * per_node_ + way * devices + i;
      named_.builder.connect(id(device), port, {bandwidth, no_latency});
    }
    return port;
  }

  [[nodiscard]] std::string leaf_name(bool rails, std::int64_t unit, std::int64_t rail,
                                      std::int64_t nodes_of_leaf) const {
    const bool is_only_unit = nodes_of_leaf >= machine_.nodes;
    if (!rails) return is_only_unit ? "switch" : fmt::format("leaf {}", unit);
    return is_only_unit ? fmt::format("rail {}", rail) : fmt::format("rail {} leaf {}", rail, unit);
  }

  // Leaves lead to spines, each of a number of nodes, and these to one switch above all.
  void join_leaves(const Switches& leaves, std::int64_t nodes_of_leaf) {
    if (leaves.size() == 1) return;
    const auto& given = cluster_.scale_out->switches;
    const SwitchTier* spine = given && given->spine ? &*given->spine : nullptr;
    const std::int64_t nodes_of_spine = spine != nullptr ? spine->nodes.value : machine_.nodes;
    const bool is_only_spine = nodes_of_spine >= machine_.nodes;
    Switches spines;
    for (const auto& [place, leaf] : leaves) {
      const std::int64_t unit = place.first * nodes_of_leaf / nodes_of_spine;
      const auto [above, is_new] = spines.try_emplace({unit, 0});
      if (is_new) {
        above->second.node =
            named_.add_switch(is_only_spine ? "spine" : fmt::format("spine {}", unit));
      }
      const Bandwidth up = leaf.down / (given ? given->leaf.oversubscription.value : 1);
      above->second.down += up;
      named_.builder.connect(leaf.node, above->second.node, {up, no_latency});
    }
    if (spines.size() == 1) return;
    const NodeId core = named_.add_switch("core");
    for (const auto& [place, below] : spines) {
      named_.builder.connect(below.node, core,
                             {below.down / spine->oversubscription.value, no_latency});
    }
  }

  void assume(std::string what) {
    if (std::find(assumptions_.begin(), assumptions_.end(), what) == assumptions_.end()) {
      assumptions_.push_back(std::move(what));
    }
  }

  const Machine& machine_;
  const ClusterProfile& cluster_;
  std::int64_t per_node_;  // that are there
  NamedBuilder named_;
  std::vector<std::string> assumptions_;
  std::vector<NodeId> nvswitches_;
};

// Chips and what joins them. Chips of several devices are switches, with their devices beside them.
class TorusWires {
 public:
  TorusWires(const Machine& machine, const TorusProfile& torus)
      : shape_(*machine.torus),
        torus_(torus),
        chips_(machine.devices / shape_.devices_per_chip),
        has_switches_(shape_.devices_per_chip > 1 && chips_ > 1),
        wire_{torus.link.bandwidth.value * torus.link.efficiency.value, torus.link.latency.value},
        named_(machine.devices) {}

  MachineGraph graph(const Place& place) && {
    if (has_switches_) {
      for (std::int64_t chip = 0; chip < chips_; ++chip) {
        named_.add_switch(fmt::format("chip ({})", fmt::join(coordinates_of(chip), ", ")));
      }
    }
    for (std::int64_t chip = 0; chip < chips_; ++chip) {
      const std::int64_t links = join_neighbours(chip);
      if (shape_.devices_per_chip > 1) join_devices(chip, links);
    }
    return std::move(named_).freeze(place, [sizes = shape_.sizes, chips = chips_](NodeId node) {
      return fmt::format("device {} ({})", node, fmt::join(coordinates(node % chips, sizes), ", "));
    });
  }

 private:
  using Coordinates = std::vector<std::int64_t>;

  static Coordinates coordinates(std::int64_t chip, const std::vector<std::int64_t>& sizes) {
    Coordinates result;
    for (const std::int64_t size : sizes) {
      result.push_back(chip % size);
      chip /= size;
    }
    return result;
  }
  [[nodiscard]] Coordinates coordinates_of(std::int64_t chip) const {
    return coordinates(chip, shape_.sizes);
  }

  [[nodiscard]] NodeId node_at(const Coordinates& where) const {
    std::int64_t chip = 0;
    for (std::size_t i = where.size(); i-- > 0;) chip = chip * shape_.sizes[i] + where[i];
    return id(has_switches_ ? chips_ * shape_.devices_per_chip + chip : chip);
  }

  // Links out of a chip, up before down from even coordinates, as torus() has them; their number.
  std::int64_t join_neighbours(std::int64_t chip) {
    const Coordinates where = coordinates_of(chip);
    std::int64_t links = 0;
    for (std::size_t i = 0; i < where.size(); ++i) {
      const bool closed = shape_.wraps[i] && shape_.sizes[i] > 2;
      const auto step = [&](std::int64_t direction) {
        const std::int64_t next = where[i] + direction;
        const bool leaves = next < 0 || next >= shape_.sizes[i];
        if (leaves && !closed) return;
        named_.builder.connect_one_way(node_at(where), node_at(moved(where, i, direction)), wire_);
        ++links;
      };
      const bool is_odd = where[i] % 2 == 1;
      step(is_odd ? -1 : 1);
      step(is_odd ? 1 : -1);
    }
    return links;
  }

  [[nodiscard]] Coordinates moved(Coordinates where, std::size_t dimension,
                                  std::int64_t direction) const {
    const std::int64_t size = shape_.sizes[dimension];
    const std::int64_t next = where[dimension] + direction;
    where[dimension] = (next + size) % size;
    if ((next < 0 || next >= size) && shape_.twists(dimension)) {
      for (std::size_t i = 0; i < where.size(); ++i) {
        if (shape_.sizes[i] == 2 * size) where[i] = (where[i] + size) % (2 * size);
      }
    }
    return where;
  }

  // Devices share the links of their chip, and never wait for what is between it and them.
  void join_devices(std::int64_t chip, std::int64_t links) {
    const LinkProfile& inside = torus_.chip->link;
    const Wire beside{inside.bandwidth.value * inside.efficiency.value, inside.latency.value};
    const std::int64_t devices = shape_.devices_per_chip;
    for (std::int64_t a = 0; a < devices; ++a) {
      for (std::int64_t b = a + 1; b < devices; ++b) {
        named_.builder.connect(id(chip + a * chips_), id(chip + b * chips_), beside);
      }
      if (!has_switches_) continue;
      named_.builder.connect(id(chip + a * chips_), node_at(coordinates_of(chip)),
                             {wire_.bandwidth * static_cast<double>(links), no_latency});
    }
  }

  const TorusShape& shape_;
  const TorusProfile& torus_;
  std::int64_t chips_;
  bool has_switches_;
  Wire wire_;
  NamedBuilder named_;
};

}  // namespace

MachineGraph graph_of(const Machine& machine, const Place& place) {
  const auto& network = machine.profile.network;
  (void)checked_nodes({machine.devices}, place);
  if (const auto* cluster = std::get_if<ClusterProfile>(&network)) {
    return ClusterWires(machine, *cluster).graph(place);
  }
  if (const auto* torus = std::get_if<TorusProfile>(&network)) {
    return TorusWires(machine, *torus).graph(place);
  }
  const auto& description = std::get<NetworkDescription>(network);
  MachineGraph result;
  result.graph = build(description, machine.devices, place);
  result.name = [description, devices = machine.devices](NodeId node) {
    return node_name(description, devices, node);
  };
  result.choice = route_choice(description.kind);
  return result;
}

}  // namespace shardsim
