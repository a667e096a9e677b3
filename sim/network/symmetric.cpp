#include "sim/network/symmetric.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "base/index.hpp"

namespace shardsim::network {
namespace {

// What tells links apart: an axis and a direction, a distance, up and down.
using LinkKey = std::pair<std::size_t, std::int64_t>;

struct Crossed {
  LinkKey link;
  std::int32_t flows = 1;
};

// The way of a shift, from every device.
struct ShiftWay {
  std::vector<Crossed> links;
  std::int64_t hops = 1;
};

constexpr std::int64_t up = 1;
constexpr std::int64_t down = -1;

std::optional<ShiftWay> way_round(const Shift& shift, std::int64_t size) {
  if (size == 2) return ShiftWay{{{{shift.axis, up}, 1}}, 1};  // the one wire of a pair
  if (2 * shift.by == size) return std::nullopt;
  const std::int64_t hops = std::min(shift.by, size - shift.by);
  const std::int64_t direction = shift.by == hops ? up : down;
  return ShiftWay{{{{shift.axis, direction}, static_cast<std::int32_t>(hops)}}, hops};
}

std::optional<ShiftWay> way_of(NetworkKind kind, const Shift& shift, std::int64_t size,
                               bool is_only_lane) {
  switch (kind) {
    case NetworkKind::ring:
    case NetworkKind::torus:
      return way_round(shift, size);
    case NetworkKind::full:
      // Steps of a single lane never meet: it does not matter that each has links of its own.
      return ShiftWay{{{{0, is_only_lane ? 0 : shift.by}, 1}}, 1};
    case NetworkKind::switched:
      return ShiftWay{{{{0, up}, 1}, {{0, down}, 1}}, 2};
    default:
      return std::nullopt;
  }
}

class Symmetric {
 public:
  Symmetric(const NetworkDescription& network, std::int64_t devices)
      : network_(network), devices_(devices) {}

  [[nodiscard]] bool add(const Phases& lane, const Shape& shape, bool is_only_lane) {
    before_.clear();
    for (const Phase& phase : lane) {
      if (!add(phase, shape, is_only_lane)) return false;
    }
    return true;
  }

  [[nodiscard]] Traffic traffic() && { return std::move(traffic_); }

 private:
  bool add(const Phase& phase, const Shape& shape, bool is_only_lane) {
    std::vector<StreamId> added;
    const bool is_alone = is_only_lane && phase.targets.size() == 1;
    for (const Target& target : phase.targets) {
      const auto* shift = std::get_if<Shift>(&target);
      if (shift == nullptr) return false;
      const auto way = way_of(network_.kind, *shift, shape[shift->axis], is_alone);
      if (!way) return false;
      if (phase.targets.size() == 1 && goes_on(phase.messages, *way)) return true;
      added.push_back(add(phase.messages, *way));
    }
    before_ = std::move(added);
    return true;
  }

  // Whether it only makes the steps of the phase before more.
  bool goes_on(const Messages& messages, const ShiftWay& way) {
    if (before_.size() != 1 || messages.chunk > Bytes(0)) return false;
    const TrafficStream& last = traffic_.streams[at(before_.front())];
    Messages more = traffic_.kinds[last.kind];
    if (more.blocks != messages.blocks || more.parts != messages.parts || more.chunk > Bytes(0) ||
        last.crossings != way.links.size()) {
      return false;
    }
    for (std::size_t i = 0; i < way.links.size(); ++i) {
      const Crossing& crossing = traffic_.crossings[last.first_crossing + i];
      if (crossing.link != class_of(way.links[i].link) || crossing.flows != way.links[i].flows) {
        return false;
      }
    }
    traffic_.kinds[last.kind].steps += messages.steps;
    return true;
  }

  StreamId add(const Messages& messages, const ShiftWay& way) {
    TrafficStream stream;
    stream.latency = way.hops * round_up_to_flow_time(network_.wire.latency);
    stream.kind = static_cast<std::uint32_t>(traffic_.kinds.size());
    traffic_.kinds.push_back(messages);
    stream.first_crossing = static_cast<std::uint32_t>(traffic_.crossings.size());
    stream.crossings = static_cast<std::uint32_t>(way.links.size());
    for (const Crossed& crossed : way.links) {
      traffic_.crossings.push_back({class_of(crossed.link), crossed.flows});
    }
    stream.first_wait = static_cast<std::uint32_t>(traffic_.waits.size());
    stream.waits = static_cast<std::uint32_t>(before_.size());
    for (const StreamId id : before_) traffic_.waits.push_back({id, Until::last});
    traffic_.streams.push_back(stream);
    traffic_.alike.push_back(devices_);
    return static_cast<StreamId>(traffic_.streams.size()) - 1;
  }

  LinkId class_of(const LinkKey& key) {
    const auto [found, is_new] =
        classes_.try_emplace(key, static_cast<LinkId>(traffic_.capacities.size()));
    if (is_new) {
      traffic_.capacities.push_back(network_.wire.bandwidth);
      traffic_.links.push_back(devices_);
    }
    return found->second;
  }

  const NetworkDescription& network_;
  std::int64_t devices_;
  Traffic traffic_;
  std::map<LinkKey, LinkId> classes_;
  std::vector<StreamId> before_;  // of the phase before
};

}  // namespace

std::optional<Traffic> symmetric_traffic(const NetworkDescription& network, std::int64_t devices,
                                         const Shape& dimensions, const Shape& shape,
                                         const Lanes& lanes) {
  const bool is_round = network.kind == NetworkKind::ring || network.kind == NetworkKind::torus;
  if (is_round && (!network.wraps || dimensions != shape)) return std::nullopt;
  Symmetric symmetric(network, devices);
  for (const Phases& lane : lanes) {
    if (!symmetric.add(lane, shape, lanes.size() == 1)) return std::nullopt;
  }
  return std::move(symmetric).traffic();
}

}  // namespace shardsim::network
