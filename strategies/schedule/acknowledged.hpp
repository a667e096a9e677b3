// Which sends of a rank have surely arrived when it begins a computation, by the order of the calls
// alone: the peer has sent something behind the computation that read them, and this rank needs it.
//
//   rank 0: 0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 ...
//   rank 1: 1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 ...
//
// 0B0 needs what 1B0 has sent, behind the 1F0 that has read 0F0's result: what was sent of 0F0 is
// not needed any more when 0B0 begins.
#pragma once

#include <cstddef>
#include <vector>

#include "strategies/schedule/messages.hpp"

namespace shardsim {

struct Acknowledged {
  std::size_t at = 0;    // place of the computation among the rank's calls
  std::size_t send = 0;  // place of the send

  friend bool operator==(const Acknowledged&, const Acknowledged&) = default;
};

// As PyTorch's lists wait for sends of activations (Sends::own_backward): `at` is the place behind
// the microbatch's backward pass through the stage that has sent them. By rank, in that order.
[[nodiscard]] std::vector<std::vector<Acknowledged>> sends_until_backward(const CallLists& lists);

// By rank, in the order of the computations; of calls that can run (verify.hpp), with their
// messages. A send that nothing tells of is not in it. O(calls log calls).
[[nodiscard]] std::vector<std::vector<Acknowledged>> acknowledged_sends(const CallLists& lists,
                                                                        const PipelineShape& shape);

}  // namespace shardsim
