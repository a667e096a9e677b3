// Max-min fair sharing by progressive filling: the rates of flows over links. It knows links as
// capacities and flows as what they cross, nothing of networks, routes or time.
//
// All flows grow at one pace. Where a link is full, the flows on it stay at their rate and the
// others grow on, until every flow is held by some link (Bertsekas and Gallager, Data Networks,
// 2nd edition, section 6.5.2).
//
// Example: links a = 1, b = 0.5; flow 0 crosses a and b, flow 1 a, flow 2 b.
//   b fills first, at 0.5 / 2: flows 0 and 2 have 0.25.
//   a has 0.75 left for one flow: flow 1 has 0.75.
//
// A flow may stand for a class of flows that no symmetry tells apart, and a link for a class of
// links: `flows` is then how many flows of the class are on each link of the class. As all links
// that are full at the same pace are taken at once, a class gets the rate, to the last bit, that
// each of its flows would get.
//
// What joins or leaves changes only the flows that it is connected with, over links that they
// have in common: those alone are looked at. Cost of update_rates(): O(C log C), C what these cross
// together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/units.hpp"

namespace shardsim::network {

using LinkId = std::int32_t;
using FlowId = std::int32_t;

struct Crossing {
  LinkId link = 0;
  std::int32_t flows = 1;
};
// At least one crossing, no link twice.
using Crossings = std::span<const Crossing>;

class FairShare {
 public:
  // Capacities are above zero.
  explicit FairShare(const std::vector<Bandwidth>& capacities);

  LinkId add_link(Bandwidth capacity);
  // Zero is all right here: flows on the link then have none.
  void set_capacity(LinkId id, Bandwidth capacity);

  // Ids count from zero and may be used again after leave(). What the flow crosses is referred to
  // until then.
  void join(FlowId id, Crossings crossings);
  void leave(FlowId id);

  // Shares anew what has been joined and left since the last call. Gives the flows that have
  // another rate now, in no particular but always the same order; valid until the next call.
  const std::vector<FlowId>& update_rates();

  [[nodiscard]] Bandwidth rate(FlowId flow) const {
    return Bandwidth(flows_[static_cast<std::size_t>(flow)].rate);
  }

 private:
  struct Link {
    double capacity = 0;
    double rest = 0;           // of the capacity, while filling
    double share = 0;          // rest / growing
    std::int64_t growing = 0;  // flows that do not have their rate yet
    std::int64_t fixed = 0;    // flows that get it now
    std::uint32_t seen = 0;    // the round in which it was found last
    std::vector<FlowId> flows;
  };
  struct Flow {
    Crossings crossings;
    double rate = 0;
    std::uint32_t seen = 0;
    bool has_rate = false;  // while filling
  };
  struct Level {
    double share = 0;
    LinkId link = 0;
  };

  [[nodiscard]] Link& link(LinkId id) { return links_[static_cast<std::size_t>(id)]; }
  [[nodiscard]] Flow& flow(FlowId id) { return flows_[static_cast<std::size_t>(id)]; }
  [[nodiscard]] bool is_alone(FlowId id);
  void fix_alone();
  void see(LinkId id);
  void find_connected();
  void prepare();
  void push_level(LinkId id);
  [[nodiscard]] bool pop_level(double& share);
  void fix_rates(double rate);
  static bool later(const Level& a, const Level& b) {
    return a.share != b.share ? a.share > b.share : a.link > b.link;
  }

  std::vector<Link> links_;
  std::vector<Flow> flows_;
  // Since the last update_rates().
  std::vector<LinkId> touched_;  // whose flows have to share anew
  std::vector<FlowId> alone_;    // joined links without flows
  std::uint32_t round_ = 0;
  // Of one update_rates().
  std::vector<LinkId> connected_links_;
  std::vector<FlowId> connected_flows_;
  std::vector<Level> levels_;  // a heap; entries that no longer hold are passed over
  std::vector<LinkId> full_;
  std::vector<LinkId> relieved_;
  std::vector<FlowId> changed_;
};

}  // namespace shardsim::network
