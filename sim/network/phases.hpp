// A collective as its algorithm runs it: phases, one after the other, in which the ranks of a group
// send each other messages of one size. A rank begins a step when it has sent and received all of
// the one before, and a phase when it is done with the one before: there is no barrier. Sizes are
// parts of a payload that is not known yet: one expansion serves all sizes.
//
// Example: an all-gather over a ring of 8: one phase of 7 steps, rank r to rank r + 1, an eighth of
// the payload each.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "base/units.hpp"

namespace shardsim::network {

inline constexpr std::int32_t nobody = -1;

// How large messages are and how many follow each other:
//
//   bytes = ceil(payload * blocks / parts / chunks)      chunks = ceil(payload / chunk), or 1
//
// A message for every step, or for every chunk. Steps come one after the other, each with its
// latency; chunks follow closely: a chunk has its latency while the one before is received.
struct Messages {
  std::int64_t blocks = 1;
  std::int64_t parts = 1;  // below 2^31, blocks not above it
  std::int64_t steps = 1;
  Bytes chunk{0};  // of the payload, at most; zero: it is not cut. With chunks there is one step

  [[nodiscard]] std::int64_t count(Bytes payload) const;
  [[nodiscard]] Bytes bytes(Bytes payload) const;
  friend bool operator==(const Messages&, const Messages&) = default;
};

// Groups of ranks have a shape, row-major: {N}, or {rows, columns}.
using Shape = std::vector<std::int64_t>;

// Of every rank to the one `by` further on along an axis of the shape, from the end on at the
// beginning. 0 < by < size.
struct Shift {
  std::size_t axis = 0;
  std::int64_t by = 1;
};
// By rank: another one, or nobody; none twice.
using Targets = std::vector<std::int32_t>;
using Target = std::variant<Shift, Targets>;

// A rank sends to all of its targets at once. Those of one target follow each other: a step of its
// messages waits for what was received from the same direction.
struct Phase {
  Messages messages;
  std::vector<Target> targets;
};
using Phases = std::vector<Phase>;
// Phases that run at the same time and do not wait for each other.
using Lanes = std::vector<Phases>;

// Of all ranks of a shape.
[[nodiscard]] Targets targets_of(const Shape& shape, const Target& target);

}  // namespace shardsim::network
