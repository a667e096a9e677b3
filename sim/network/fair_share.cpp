#include "sim/network/fair_share.hpp"

#include <algorithm>
#include <cassert>
#include <limits>

namespace shardsim::network {

FairShare::FairShare(const std::vector<Bandwidth>& capacities) : links_(capacities.size()) {
  for (std::size_t i = 0; i < capacities.size(); ++i) {
    assert(capacities[i] > Bandwidth(0));
    links_[i].capacity = capacities[i].count();
  }
}

LinkId FairShare::add_link(Bandwidth capacity) {
  links_.emplace_back();
  links_.back().capacity = capacity.count();
  return static_cast<LinkId>(links_.size()) - 1;
}

void FairShare::set_capacity(LinkId id, Bandwidth capacity) {
  link(id).capacity = capacity.count();
  if (!link(id).flows.empty()) touched_.push_back(id);
}

void FairShare::join(FlowId id, Crossings crossings) {
  assert(!crossings.empty());
  if (static_cast<std::size_t>(id) >= flows_.size())
    flows_.resize(static_cast<std::size_t>(id) + 1);
  flow(id) = Flow{crossings};
  for (const Crossing& crossing : crossings) link(crossing.link).flows.push_back(id);
  if (is_alone(id)) {
    alone_.push_back(id);
  } else {
    for (const Crossing& crossing : crossings) touched_.push_back(crossing.link);
  }
}

void FairShare::leave(FlowId id) {
  const bool was_alone = is_alone(id);
  for (const Crossing& crossing : flow(id).crossings) {
    std::vector<FlowId>& flows = link(crossing.link).flows;
    flows.erase(std::find(flows.begin(), flows.end(), id));
    if (!was_alone) touched_.push_back(crossing.link);
  }
}

bool FairShare::is_alone(FlowId id) {
  const Crossings crossings = flow(id).crossings;
  return std::all_of(crossings.begin(), crossings.end(), [&](const Crossing& crossing) {
    const std::vector<FlowId>& flows = link(crossing.link).flows;
    return flows.size() == 1 && flows.front() == id;
  });
}

const std::vector<FlowId>& FairShare::update_rates() {
  changed_.clear();
  fix_alone();
  if (touched_.empty()) return changed_;
  find_connected();
  prepare();
  double share = 0;
  while (pop_level(share)) fix_rates(share);
  return changed_;
}

// The rate that filling would give it, without the work. What another has joined since is left to
// that.
void FairShare::fix_alone() {
  for (const FlowId id : alone_) {
    if (!is_alone(id)) continue;
    double rate = std::numeric_limits<double>::infinity();
    for (const Crossing& crossing : flow(id).crossings) {
      rate = std::min(rate, link(crossing.link).capacity / static_cast<double>(crossing.flows));
    }
    flow(id).rate = rate;
    changed_.push_back(id);
  }
  alone_.clear();
}

void FairShare::see(LinkId id) {
  if (link(id).seen == round_) return;
  link(id).seen = round_;
  connected_links_.push_back(id);
}

void FairShare::find_connected() {
  ++round_;
  connected_links_.clear();
  connected_flows_.clear();
  for (const LinkId id : touched_) see(id);
  touched_.clear();
  // The list grows on the way. NOLINTNEXTLINE(modernize-loop-convert)
  for (std::size_t i = 0; i < connected_links_.size(); ++i) {
    for (const FlowId id : link(connected_links_[i]).flows) {
      if (flow(id).seen == round_) continue;
      flow(id).seen = round_;
      connected_flows_.push_back(id);
      for (const Crossing& crossing : flow(id).crossings) see(crossing.link);
    }
  }
}

void FairShare::prepare() {
  for (const LinkId id : connected_links_) {
    link(id).rest = link(id).capacity;
    link(id).growing = 0;
  }
  for (const FlowId id : connected_flows_) {
    flow(id).has_rate = false;
    for (const Crossing& crossing : flow(id).crossings)
      link(crossing.link).growing += crossing.flows;
  }
  levels_.clear();
  for (const LinkId id : connected_links_) push_level(id);
}

void FairShare::push_level(LinkId id) {
  Link& at = link(id);
  if (at.growing == 0) return;
  at.share = at.rest / static_cast<double>(at.growing);
  levels_.push_back({at.share, id});
  std::push_heap(levels_.begin(), levels_.end(), later);
}

// The pace at which links are full next, and these links, as full_.
bool FairShare::pop_level(double& share) {
  full_.clear();
  while (!levels_.empty() && (full_.empty() || levels_.front().share == share)) {
    const Level level = levels_.front();
    std::pop_heap(levels_.begin(), levels_.end(), later);
    levels_.pop_back();
    const Link& at = link(level.link);
    if (at.growing == 0 || at.share != level.share) continue;  // no longer holds
    share = level.share;
    full_.push_back(level.link);
  }
  return !full_.empty();
}

// All flows on links that are full have `rate`; the other links that they cross have less to share.
void FairShare::fix_rates(double rate) {
  relieved_.clear();
  for (const LinkId full : full_) {
    for (const FlowId id : link(full).flows) {
      Flow& fixed = flow(id);
      if (fixed.has_rate) continue;
      fixed.has_rate = true;
      if (fixed.rate != rate) changed_.push_back(id);
      fixed.rate = rate;
      for (const Crossing& crossing : fixed.crossings) {
        if (link(crossing.link).fixed == 0) relieved_.push_back(crossing.link);
        link(crossing.link).fixed += crossing.flows;
      }
    }
  }
  // One product for all that were fixed now: links that are alike keep the same rest, whatever the
  // order of their flows.
  for (const LinkId id : relieved_) {
    Link& at = link(id);
    at.growing -= at.fixed;
    at.rest -= static_cast<double>(at.fixed) * rate;
    at.fixed = 0;
    push_level(id);
  }
}

}  // namespace shardsim::network
