#include "sim/collectives/slices_cost.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.hpp"
#include "base/index.hpp"
#include "sim/collectives/permute_pairs.hpp"
#include "sim/collectives/torus_cost.hpp"
#include "sim/collectives/torus_routes.hpp"

namespace shardsim {
namespace {

Placement one_slice(const Placement& placement) {
  Machine machine = placement.machine();
  machine.devices /= machine.slices;
  machine.slices = 1;
  std::vector<MeshAxis> axes = placement.mesh().axes();
  for (std::size_t i = 0; i < axes.size(); ++i) axes[i].size /= placement.slices_along()[i];
  return {Mesh(std::move(axes)), machine, placement.spans(), placement.model()};
}

// What is at work for a part of the time only.
void add_links(const std::vector<LinkUse>& links, double part, CostBreakdown& cost) {
  for (const LinkUse& use : links) {
    cost.links.push_back({use.level, part * use.out, part * use.in});
  }
}

double part_of_transfer(Seconds part, Seconds whole) {
  return whole > Seconds(0) ? part.count() / whole.count() : 0;
}

// One after the other, over different links.
CostBreakdown in_turn(const CostBreakdown& first, const CostBreakdown& second) {
  if (first.links.empty()) return second;
  if (second.links.empty()) return first;
  CostBreakdown cost;
  cost.algorithm = first.algorithm + ", " + second.algorithm;
  cost.launch = first.launch + second.launch;
  cost.latency = first.latency + second.latency;
  cost.transfer = first.transfer + second.transfer;
  cost.memory = {first.memory.out + second.memory.out, first.memory.in + second.memory.in};
  for (const CostBreakdown* half : {&first, &second}) {
    add_links(half->links, part_of_transfer(half->transfer, cost.transfer), cost);
  }
  return cost;
}

[[noreturn]] void fail_uneven() {
  throw InputError({"", "/mesh"},
                   "groups that lie on slices unevenly have no cost on several slices");
}

}  // namespace

SlicesCosts::SlicesCosts(const Placement& placement)
    : placement_(placement),
      profile_(std::get<TorusProfile>(placement.machine().profile.network)),
      slice_(one_slice(placement)) {}

CostBreakdown SlicesCosts::cost(const Collective& collective) const {
  const CollectiveKind kind = collective.kind;
  if (kind == CollectiveKind::collective_permute) return permute_cost(collective);
  const Levels levels = levels_of(collective);
  const auto payload = static_cast<double>(collective.payload.count());
  const double share = payload / static_cast<double>(levels.members);
  const bool exchange = kind == CollectiveKind::all_to_all;
  const CostBreakdown inside = in_slices(levels, kind, collective.payload);
  const CostBreakdown between = between_slices(levels, kind, exchange ? payload : share);
  return kind == CollectiveKind::all_gather ? in_turn(between, inside) : in_turn(inside, between);
}

CostBreakdown SlicesCosts::in_slices(const Levels& levels, CollectiveKind kind,
                                     Bytes payload) const {
  CostBreakdown slowest;
  if (levels.members == 1) return slowest;
  for (Collective collective : levels.inside) {
    collective.kind = kind;
    collective.payload = payload;
    CostBreakdown cost = torus_cost(slice_, collective);
    if (cost.links.empty()) continue;
    cost.launch = slice_.machine().profile.collective_launch.value;
    if (slowest.links.empty() || slowest.total() < cost.total()) slowest = std::move(cost);
  }
  return slowest;
}

CostBreakdown SlicesCosts::between_slices(const Levels& levels, CollectiveKind kind,
                                          double bytes) const {
  CostBreakdown cost;
  if (levels.slices == 1) return cost;
  const bool exchange = kind == CollectiveKind::all_to_all;
  const auto k = static_cast<double>(levels.slices);
  const double rounds = kind == CollectiveKind::all_reduce ? 2 : 1;
  const LinkProfile& dcn = *profile_.dcn;
  const double rate = dcn.bandwidth.value.count() * dcn.efficiency.value /
                      static_cast<double>(slice_.machine().torus->devices_per_chip);
  cost.algorithm = fmt::format("{} over {} slices", exchange ? "pairwise" : "ring", levels.slices);
  cost.latency = dcn.latency.value * (rounds * (k - 1));
  const double wire = rounds * (k - 1) / k * bytes;
  cost.transfer = Seconds(wire / rate);
  cost.links = {{LinkLevel::dcn}};
  cost.memory = traffic_of_dma(kind, wire);
  return cost;
}

SlicesCosts::Levels SlicesCosts::levels_of(const Collective& collective) const {
  return collective.groups.empty() ? levels_of_axes(collective.axes)
                                   : levels_of_groups(collective.groups);
}

SlicesCosts::Levels SlicesCosts::levels_of_axes(const std::vector<AxisRef>& axes) const {
  Levels levels;
  Collective inside;
  for (const AxisRef& part : axes) {
    const std::int64_t outer = placement_.slices_along()[at(part.axis)];
    // Of the part, what lies over slices and the rest.
    const std::int64_t left = outer > part.pre_size ? outer / part.pre_size : 1;
    const std::int64_t across = std::min(left, part.size);
    const bool cuts = outer % std::min(outer, part.pre_size) != 0 ||
                      part.pre_size % std::min(outer, part.pre_size) != 0 || left % across != 0 ||
                      part.size % across != 0;
    if (cuts) {
      throw InputError({"", "/mesh"}, placement_.mesh().name_of(part) +
                                          " cuts the slices where they cannot be cut");
    }
    levels.slices *= across;
    const std::int64_t rest = part.size / across;
    if (rest == 1) continue;
    levels.members *= rest;
    inside.axes.push_back({part.axis, std::max<std::int64_t>(part.pre_size / outer, 1), rest});
  }
  levels.inside = {inside};
  return levels;
}

SlicesCosts::Levels SlicesCosts::levels_of_groups(
    const std::vector<std::vector<std::int64_t>>& groups) const {
  Levels levels{0, 0, {}};
  std::map<std::int64_t, std::vector<std::vector<std::int64_t>>> by_slice;
  for (const auto& group : groups) {
    std::map<std::int64_t, std::vector<std::int64_t>> parts;
    for (const std::int64_t member : group) {
      const Position position = position_of(member);
      parts[position.slice].push_back(position.inside);
    }
    const auto slices = static_cast<std::int64_t>(parts.size());
    if (levels.slices == 0) {
      levels.slices = slices;
      levels.members = static_cast<std::int64_t>(parts.begin()->second.size());
    }
    if (slices != levels.slices) fail_uneven();
    for (auto& [slice, members] : parts) {
      if (static_cast<std::int64_t>(members.size()) != levels.members) fail_uneven();
      by_slice[slice].push_back(std::move(members));
    }
  }
  std::set<std::vector<std::vector<std::int64_t>>> distinct;
  for (auto& [slice, lists] : by_slice) distinct.insert(std::move(lists));
  for (const auto& lists : distinct) {
    levels.inside.emplace_back();
    levels.inside.back().groups = lists;
  }
  return levels;
}

SlicesCosts::Position SlicesCosts::position_of(std::int64_t position) const {
  const std::vector<MeshAxis>& axes = placement_.mesh().axes();
  Position result;
  std::int64_t slice_stride = 1;
  std::int64_t inside_stride = 1;
  for (std::size_t i = axes.size(); i-- > 0;) {
    const std::int64_t outer = placement_.slices_along()[i];
    const std::int64_t inner = axes[i].size / outer;
    const std::int64_t along = position % axes[i].size;
    position /= axes[i].size;
    result.slice += along / inner * slice_stride;
    result.inside += along % inner * inside_stride;
    slice_stride *= outer;
    inside_stride *= inner;
  }
  return result;
}

CostBreakdown SlicesCosts::permute_cost(const Collective& collective) const {
  std::map<std::int64_t, Collective> inside;  // by slice
  std::vector<std::pair<Position, Position>> between;
  for (const auto& [source, target] : permute_pairs(placement_.mesh(), collective)) {
    const Position from = position_of(source);
    const Position to = position_of(target);
    if (from.slice == to.slice) {
      inside[from.slice].source_targets.emplace_back(from.inside, to.inside);
    } else {
      between.emplace_back(from, to);
    }
  }
  Levels levels{1, 0, {}};
  for (auto& [slice, permute] : inside) levels.inside.push_back(std::move(permute));
  CostBreakdown in_slice = in_slices(levels, collective.kind, collective.payload);
  if (between.empty()) return in_slice;
  const LinkProfile& dcn = *profile_.dcn;
  const double bytes =
      static_cast<double>(collective.payload.count()) * static_cast<double>(busiest_chip(between));
  const double rate = dcn.bandwidth.value.count() * dcn.efficiency.value;
  const Seconds over_dcn(bytes / rate);
  CostBreakdown cost;
  cost.algorithm = "permute";
  cost.launch = slice_.machine().profile.collective_launch.value;
  cost.latency = std::max(in_slice.latency, dcn.latency.value);
  cost.transfer = std::max(in_slice.transfer, over_dcn);
  cost.memory = traffic_of_dma(collective.kind, bytes);
  add_links(in_slice.links, part_of_transfer(in_slice.transfer, cost.transfer), cost);
  add_links({{LinkLevel::dcn}}, part_of_transfer(over_dcn, cost.transfer), cost);
  return cost;
}

std::int64_t SlicesCosts::busiest_chip(
    const std::vector<std::pair<Position, Position>>& messages) const {
  const TorusRoutes routes(slice_);
  const std::int64_t chips = slice_.machine().devices / slice_.machine().torus->devices_per_chip;
  const auto chip_of = [&](const Position& position) {
    return position.slice * chips + routes.device(position.inside) % chips;
  };
  std::map<std::int64_t, std::int64_t> sent;
  std::map<std::int64_t, std::int64_t> received;
  std::int64_t busiest = 0;
  for (const auto& [from, to] : messages) {
    busiest = std::max({busiest, ++sent[chip_of(from)], ++received[chip_of(to)]});
  }
  return busiest;
}

}  // namespace shardsim
