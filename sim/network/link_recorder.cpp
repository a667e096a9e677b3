#include "sim/network/link_recorder.hpp"

#include <cassert>
#include <utility>

#include "base/index.hpp"
#include "sim/network/spread.hpp"

namespace shardsim::network {
namespace {

// Relative: what the shares of a link add up to, rounded.
constexpr double as_full = 1e-9;

}  // namespace

LinkRecorder::LinkRecorder(const std::vector<Bandwidth>& capacities, FlowTime whole,
                           std::size_t bins)
    : width_(static_cast<double>(whole.count()) / static_cast<double>(bins)),
      bins_(bins),
      links_(capacities.size()),
      histories_(capacities.size()) {
  assert(whole > FlowTime(0) && bins > 0);
  for (std::size_t i = 0; i < capacities.size(); ++i) {
    links_[i].full_rate = capacities[i].count() * (1 - as_full);
    histories_[i].bytes.assign(bins, 0);
  }
}

void LinkRecorder::carry(Crossings crossings, FlowTime begin, FlowTime end, double bytes) {
  if (begin == end || bytes == 0) return;
  const double rate = bytes / static_cast<double>((end - begin).count());
  const auto add = [&](std::size_t bin, double length) {
    for (const Crossing& crossing : crossings) {
      histories_[at(crossing.link)].bytes[bin] +=
          rate * length * static_cast<double>(crossing.flows);
    }
  };
  spread(static_cast<double>(begin.count()), static_cast<double>(end.count()), width_, bins_, add);
}

void LinkRecorder::change_rate(Crossings crossings, FlowTime now, double before, double after) {
  for (const Crossing& crossing : crossings) {
    Link& link = links_[at(crossing.link)];
    if (now > link.since && link.rate >= link.full_rate) {
      if (link.full == FlowTime(0)) link.first_full = link.since;
      link.full += now - link.since;
      link.last_full = now;
    }
    link.since = now;
    link.flows += (after > 0 ? 1 : 0) - (before > 0 ? 1 : 0);
    // Where nothing flows any more, nothing is left of roundings either.
    const double change = (after - before) * static_cast<double>(crossing.flows);
    link.rate = link.flows == 0 ? 0 : link.rate + change;
  }
}

std::vector<LinkHistory> LinkRecorder::histories() && {
  for (std::size_t i = 0; i < links_.size(); ++i) {
    histories_[i].full = to_seconds(links_[i].full);
    histories_[i].first_full = to_seconds(links_[i].first_full);
    histories_[i].last_full = to_seconds(links_[i].last_full);
  }
  return std::move(histories_);
}

}  // namespace shardsim::network
