// A schedule with its sends and receives: what a rank posts, in order.
//
//   rank 0: 0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1
//   rank 1: 1RECV_F0 1F0 1RECV_F1 1F1 1B0 1SEND_B0 1B1 1SEND_B1
//
// A forward's result goes to the next stage, the gradient that a B or an I makes to the stage
// before, where that stage is another rank's. A send stands right behind its action (behind both of
// an overlapped pair). Where its receive stands on the other rank is PyTorch's rule
// (_add_send_recv): ranks take turns, each adds one action when what it needs has been sent, and a
// sender puts the receive at the end of what the receiver has so far. So receives are in the order
// of the sends of one such round, no rank receives in another order than its peer sends, and
// nothing hangs. PyTorch's own lists have UNSHARD and the like between, which shifts the turns;
// these are of the computations alone, as its _simulate_comms_compute is fed in tests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "strategies/schedule/schedule.hpp"

namespace shardsim {

struct Call {
  enum class Kind : std::uint8_t { compute, send, receive };
  Kind kind = Kind::compute;
  // The computation; the one whose result is sent; the one that needs what is received.
  Action action;

  friend bool operator==(const Call&, const Call&) = default;
};

// "0SEND_F0", "1RECV_B3", "2W1". Words for a gradient are _B, for I as for B.
[[nodiscard]] std::string call_text(const Call& call);

// By rank. Of a schedule that verify() passes.
[[nodiscard]] std::vector<std::vector<Call>> with_messages(const PipelineSchedule& schedule);
// Without messages, for a dry run that has none.
[[nodiscard]] std::vector<std::vector<Call>> computations(const PipelineSchedule& schedule);

}  // namespace shardsim
