// How attention reads keys and values of a sequence that is split over devices (context
// parallelism).
//
//   gather      all of them are gathered before the kernel (Megatron-Core's all_gather, torchtitan)
//   ring        a kernel computes with each device's part, and partial results are merged (Liu et
//               al. 2023, arXiv:2310.01889). Parts go round from device to device, one kernel ahead
//               (Transformer Engine's p2p), or are all gathered while the first kernel computes
//               (PyTorch); their gradients go round. Parts are dealt out so that a causal mask
//               leaves each kernel as much
//   all_to_all  heads are split in place of the sequence, by an all-to-all before and behind
//               (DeepSpeed's Ulysses, arXiv:2309.14509)
//   ring_all_to_all  both: groups of neighbours exchange heads, and parts go round from group to
//               group (layout/context_axes.hpp)
#pragma once

#include <cstdint>

namespace shardsim {

enum class ContextMethod : std::uint8_t { gather, ring, all_to_all, ring_all_to_all };

// How keys and values of a ring's parts come to all devices.
enum class Rotation : std::uint8_t { messages, gather };

// What becomes of layers that hand a state along the sequence.
//
//   refused  a framework has nothing for them
//   gather   the sequence is gathered before them, and every device works on all of it
//   heads    Mamba 2's exchange heads for the sequence (partition/state_exchange.hpp)
enum class StateMethod : std::uint8_t { refused, gather, heads };

struct ContextLayout {
  ContextMethod method = ContextMethod::gather;
  bool balanced = true;  // parts are pairs from both ends; false: in order, and the last device has
                         // all the others' keys to look at
  bool keeps_gathered = false;             // what was gathered is kept for backward (PyTorch)
  Rotation rotation = Rotation::messages;  // of a ring
  std::int64_t head_devices = 0;  // of ring_all_to_all: that split heads; 0: as many as fit
  bool wide_gradients = false;  // of a ring: added up in fp32, and sent so (PyTorch); false: in the
                                // compute dtype
  StateMethod states = StateMethod::gather;
  friend bool operator==(const ContextLayout&, const ContextLayout&) = default;
};

}  // namespace shardsim
