// A collective as streams: messages of one rank to another, one after the other, each as soon as
// what it waits for has arrived. Phases are streams (schedule_of), and so are trees, in which a
// rank receives from several and sends to several.
//
//   Schedule schedule(/*ranks=*/3);                                  // a chain, chunk by chunk
//   const auto chunks = schedule.kind({.chunk = Bytes(512 * KiB)});
//   const StreamId first = schedule.add(0, 1, chunks, {});
//   schedule.add(1, 2, chunks, {{first, Until::same}});
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/network/phases.hpp"

namespace shardsim::network {

using StreamId = std::int32_t;

// Which message of another stream the one numbered s waits for. The streams of `same` and `last`
// come before the one that waits.
enum class Until : std::uint8_t {
  same,      // that numbered s: what it passes on
  previous,  // that numbered s - 1
  last,      // all of them
};

struct Wait {
  StreamId stream = 0;
  Until until = Until::last;
};

struct Stream {
  std::int32_t from = 0;  // ranks
  std::int32_t to = 0;
  std::uint32_t kind = 0;  // in Schedule::kinds
  std::uint32_t first_wait = 0;
  std::uint32_t waits = 0;
};

struct Schedule {
  std::vector<Messages> kinds;  // none twice
  std::vector<Stream> streams;
  std::vector<Wait> waits;

  // The number of these messages in `kinds`.
  std::uint32_t kind(const Messages& messages);
  StreamId add(std::int32_t from, std::int32_t to, std::uint32_t messages_kind,
               const std::vector<Wait>& waiting_for);
  [[nodiscard]] std::span<const Wait> waits_of(const Stream& stream) const {
    return std::span(waits).subspan(stream.first_wait, stream.waits);
  }
};

// Ordered by lane, phase, target and sender.
[[nodiscard]] Schedule schedule_of(const Shape& shape, const Lanes& lanes);

}  // namespace shardsim::network
