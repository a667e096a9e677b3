#include "sim/network/flow_simulation.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "sim/network/link_recorder.hpp"

namespace shardsim::network {
namespace {

constexpr double femtoseconds_per_second = 1e15;

// What differs from a whole number by no more than a few roundings of a double is that number: a
// latency of 500 ns is 500,000,000 fs, though 500 * 1e-9 * 1e15 is a little more.
FlowTime whole(double femtoseconds) {
  constexpr auto most = static_cast<double>(std::numeric_limits<std::int64_t>::max());
  constexpr double roundings = 4 * std::numeric_limits<double>::epsilon();
  if (!(femtoseconds < most)) throw std::range_error("a flow takes longer than 2.5 hours");
  const double nearest = std::round(femtoseconds);
  const bool is_whole = std::abs(femtoseconds - nearest) <= roundings * femtoseconds;
  return FlowTime(static_cast<std::int64_t>(is_whole ? nearest : std::ceil(femtoseconds)));
}

}  // namespace

FlowTime round_up_to_flow_time(Seconds time) {
  return whole(time.count() * femtoseconds_per_second);
}

FlowTime sum(FlowTime a, FlowTime b) {
  if (a.count() > std::numeric_limits<std::int64_t>::max() - b.count()) {
    throw std::range_error("flows take longer than 2.5 hours");
  }
  return a + b;
}

Seconds to_seconds(FlowTime time) {
  return Seconds(static_cast<double>(time.count()) / femtoseconds_per_second);
}

FlowId FlowSimulation::start(FlowTime begin, Bytes bytes, Crossings crossings) {
  assert(begin >= now_ && bytes > Bytes(0) && !crossings.empty());
  FlowId id = static_cast<FlowId>(flows_.size());
  if (free_.empty()) {
    flows_.emplace_back();
  } else {
    id = free_.back();
    free_.pop_back();
  }
  Flow& started = flow(id);
  started.crossings = crossings;
  started.rest = static_cast<double>(bytes.count());
  started.under_way = true;
  schedule(id, Phase::begins, begin);
  return id;
}

bool FlowSimulation::advance() {
  free_.insert(free_.end(), finished_.rbegin(), finished_.rend());
  finished_.clear();
  while (finished_.empty() && !events_.empty()) {
    const std::vector<Event>& moment = events_.pop_moment();
    now_ = moment.front().time;
    for (const Phase phase : {Phase::ends, Phase::begins}) {
      for (const Event& event : moment) {
        if (event.phase == phase && holds(event)) happen(event);
      }
    }
    share_anew();
  }
  return !finished_.empty();
}

std::vector<FlowSimulation::Situation> FlowSimulation::situations() const {
  std::vector<Situation> result;
  for (std::size_t id = 0; id < flows_.size(); ++id) {
    const Flow& of = flows_[id];
    if (!of.under_way) continue;
    const bool flows = of.phase == Phase::ends;
    result.push_back({static_cast<FlowId>(id), flows, of.next - now_,
                      flows ? now_ - of.since : FlowTime(0), of.rest, flows ? of.rate : 0});
  }
  return result;
}

bool FlowSimulation::holds(const Event& event) {
  const Flow& of = flow(event.flow);
  return of.under_way && of.phase == event.phase && of.next == event.time;
}

void FlowSimulation::schedule(FlowId id, Phase phase, FlowTime time) {
  flow(id).phase = phase;
  flow(id).next = time;
  events_.push({time, phase, id});
}

void FlowSimulation::happen(const Event& event) {
  Flow& of = flow(event.flow);
  if (event.phase == Phase::ends) {
    of.under_way = false;
    if (recorder_ != nullptr) [[unlikely]] {
      tell_recorder(of, of.rest, 0);
    }
    shares_.leave(event.flow);
    finished_.push_back(event.flow);
  } else {
    of.since = now_;
    of.rate = 0;
    shares_.join(event.flow, of.crossings);
  }
}

// What is left of the flows whose rate changes, and when they end at the new one.
void FlowSimulation::share_anew() {
  for (const FlowId id : shares_.update_rates()) {
    Flow& of = flow(id);
    const auto passed = static_cast<double>((now_ - of.since).count());
    const double rest = std::max(0.0, of.rest - of.rate * (passed / femtoseconds_per_second));
    if (recorder_ != nullptr) [[unlikely]] {
      tell_recorder(of, of.rest - rest, shares_.rate(id).count());
    }
    of.rest = rest;
    of.since = now_;
    of.rate = shares_.rate(id).count();
    const FlowTime left = round_up_to_flow_time(Seconds(of.rest / of.rate));
    schedule(id, Phase::ends, sum(now_, left));
  }
}

// What it has moved since its rate changed last, and at which it goes on.
void FlowSimulation::tell_recorder(const Flow& of, double moved, double rate) {
  recorder_->carry(of.crossings, of.since, now_, moved);
  recorder_->change_rate(of.crossings, now_, of.rate, rate);
}

}  // namespace shardsim::network
