// Heads of a state-space layer in place of the sequence, where that is split over devices
// (Megatron-Core 0.16, ssm/mamba_context_parallel.py): what enters the convolution and the scan is
// exchanged, so that each device has the whole sequence for its part of the heads, and the result
// is exchanged back; gradients go the other ways.
//
//   z, x, b, c and steps of l / n tokens, all heads   -> n devices, five messages
//   l tokens, heads / n                                  convolution, scan, gate
//   y                                                 <- one message; a prefill sends z back, too,
//                                                        where a norm gates
//
// A device's work is the same either way: l tokens of heads / n are as many numbers as l / n tokens
// of all heads, which values go on being said to be. Where a device of the model axes has fewer
// groups than n, b and c are sent once for each device that reads them. Copies before and behind
// messages join parts and put tokens in order.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "strategies/layout/assign.hpp"
#include "strategies/partition/spmd_builder.hpp"

namespace shardsim {

// The workload as it is then planned: what works along the sequence may be split along it, states
// lie in as many chunks as there are of a device's part of the heads, divided by `devices`.
[[nodiscard]] Workload with_heads_exchanged(Workload workload, std::int64_t devices);

class StateExchange {
 public:
  StateExchange(SpmdBuilder& builder, const Layout& layout);

  // After `op` has made a value of `id`: what arrives of it, or the value itself where it stays.
  ValueId send(const Op& op, TensorId id, ValueId made, BufferCategory arrives_as,
               BlockPass& pass) const;

 private:
  struct Piece {
    std::string name;
    std::int64_t elements = 0;  // of one device of the model axes among them all
    std::int64_t copies = 1;    // each of another device's
  };
  struct Sent {
    std::vector<Piece> pieces;  // a message for each
    int times = 1;              // there, and back
    bool enters = false;        // the mixer, else leaves it
  };

  void find_sent(const Workload& workload, const std::vector<const Op*>& maker, const Op& scan);
  [[nodiscard]] Piece piece(TensorId id, std::int64_t copies = 1) const;
  void copy(const Op& op, const std::vector<ValueId>& from, const std::vector<ValueId>& to,
            std::int64_t passes, BlockPass& pass) const;
  ValueId exchange(const Op& op, const Sent& sent, bool enters, ValueId value,
                   BlockPass& pass) const;

  SpmdBuilder& builder_;
  AxisList axes_;  // of the sequence
  std::int64_t model_devices_ = 1;
  std::map<TensorId, Sent> sent_;
};

}  // namespace shardsim
