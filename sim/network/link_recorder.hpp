// Writes down what flows carry over links while a FlowSimulation runs. Rates are constant from one
// change to the next: bytes of bins are integrals, not samples, and as a flow's bytes are those
// that it has moved, not its rate times a rounded time, the bins of a link add up to what it
// carries.
//
//   LinkRecorder recorder(capacities, whole, /*bins=*/60);
//   flows.record(recorder);
//   while (flows.advance()) ...
//   std::move(recorder).histories()
//
// Cost: O(links crossed * bins between two changes of a rate) for every such change; memory
// O(links * bins).
#pragma once

#include <cstdint>
#include <vector>

#include "sim/network/flow_simulation.hpp"
#include "sim/network/link_history.hpp"

namespace shardsim::network {

class LinkRecorder {
 public:
  // `whole` is above zero: when the last flow ends.
  LinkRecorder(const std::vector<Bandwidth>& capacities, FlowTime whole, std::size_t bins);

  // A flow has moved `bytes` over each of its links, evenly, from `begin` to `end`.
  void carry(Crossings crossings, FlowTime begin, FlowTime end, double bytes);
  // In bytes per second; zero before a flow begins and when it has ended.
  void change_rate(Crossings crossings, FlowTime now, double before, double after);

  // By link.
  [[nodiscard]] std::vector<LinkHistory> histories() &&;

 private:
  struct Link {
    double full_rate = 0;  // from here on it counts as full
    double rate = 0;       // since
    FlowTime since{0};
    std::int64_t flows = 0;  // that have a rate
    FlowTime full{0};        // how long in all, from when on, until when
    FlowTime first_full{0};
    FlowTime last_full{0};
  };

  double width_;  // of a bin, in femtoseconds
  std::size_t bins_;
  std::vector<Link> links_;
  std::vector<LinkHistory> histories_;
};

}  // namespace shardsim::network
