// What a collective reads and writes in the memory of a device, for every byte that the device
// sends over links (W of them, wire_bytes_per_device).
//
// Thread blocks (NCCL, RCCL) pass data on through buffers in the receiver's memory:
//
//   all-gather,      a byte that comes is written to the buffer, read from it (and sent on out of
//                    registers) and written to the result                                      3 W
//   reduce-scatter   written to the buffer, read from it, added to the byte of one's own,
//                    which is read, and sent on out of registers                               3 W
//   all-reduce       one after the other, half of W each                                       3 W
//   all-to-all, permute   read where it leaves; written, read and written where it comes       4 W
//   over a NIC       written to a buffer of the sender's and read by the NIC besides           + 2
//
// A switch that reduces (NVLS) reads and writes the buffers itself. Of a payload P, to one byte or
// another of P / ranks:
//
//   reduce-scatter   copied to the buffer (read, written), read by the switch                  3 P
//   all-gather       written by the switch, copied from the buffer (read, written)             3 P
//   all-reduce       one after the other                                                       6 P
//
// DMA engines (TPUs) write where data is to be: an all-gather's byte is written once and read once
// to be sent on, 2 W; a reduce-scatter's is read once more to be added, 3 W; others 2 W.
//
// Caches are left out: buffers that stay in one are not seen by memory, and what is counted here is
// the most that it sees. Buffers that a program has registered with NCCL save copies; not counted.
//
// Example: all-gather of 1 GiB over 8 H100s, W = 0.94e9 bytes in 2.5 ms: 2.8e9 bytes, 1.1 TB/s of
// 3.35.
#pragma once

#include "plan/plan.hpp"

namespace shardsim {

// Bytes.
struct MemoryTraffic {
  double out = 0;  // read and written for what leaves
  double in = 0;   // for what comes

  [[nodiscard]] double total() const { return out + in; }
  friend bool operator==(const MemoryTraffic&, const MemoryTraffic&) = default;
};

// `nics`: bytes of `wire` that leave through NICs.
[[nodiscard]] MemoryTraffic traffic_of_thread_blocks(CollectiveKind kind, double wire, double nics);
[[nodiscard]] MemoryTraffic traffic_of_switches(CollectiveKind kind, double payload, double nics);
[[nodiscard]] MemoryTraffic traffic_of_dma(CollectiveKind kind, double wire);

}  // namespace shardsim
