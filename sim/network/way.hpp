// A message that shares its way with no other: what closed forms are made of.
//
//   Way way(wire, /*hops=*/2);
//   way.time(bytes) = way.latency() + way.transfer(bytes) = 2 * latency + bytes / bandwidth
//
// Latency and transfer are each rounded up to a femtosecond, as flows are: where nothing is
// contended a closed form is the simulated time, not nearly it.
#pragma once

#include "hardware_profiles/network/network_graph.hpp"
#include "sim/network/flow_simulation.hpp"

namespace shardsim::network {

class Way {
 public:
  // Over links that are alike.
  Way(const Wire& wire, std::int64_t hops)
      : latency_(hops * round_up_to_flow_time(wire.latency)), bandwidth_(wire.bandwidth) {}

  [[nodiscard]] FlowTime latency() const { return latency_; }
  [[nodiscard]] FlowTime transfer(Bytes bytes) const {
    return round_up_to_flow_time(bytes / bandwidth_);
  }
  [[nodiscard]] FlowTime time(Bytes bytes) const { return latency_ + transfer(bytes); }

 private:
  FlowTime latency_;
  Bandwidth bandwidth_;
};

}  // namespace shardsim::network
