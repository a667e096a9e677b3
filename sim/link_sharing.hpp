// Flows that are on the same links at the same time share them.
//
// A flow is one collective's bytes on the links of its program's devices, or one message from the
// devices of one program to those of another. A link is a level in one direction at one device
// class. A flow moves at 1/s of full speed, s = the most flows on any of its links: every flow
// wants all of a link, so equal shares are max-min fair but for the rest that a flow leaves which
// is held back elsewhere.
//
// Example: A needs 100 ps of a link, B as well; A begins at 0, B at 50.
//   0 .. 50 A alone, 50 ps left; then both at half speed; A ends at 150, B has 50 left, ends at
//   200.
//
// Time is kept as the end that a flow would reach at its present speed. Only when its share
// changes is the rest recomputed, rounded up to a picosecond; a flow that never shares ends exactly
// when it would alone. Cost of a join or leave: O(flows).
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.hpp"

namespace shardsim {

// Bits of link levels by direction: level for outgoing, level + 8 for incoming.
using LinkSet = std::uint16_t;
[[nodiscard]] constexpr LinkSet outgoing(unsigned levels) { return static_cast<LinkSet>(levels); }
[[nodiscard]] constexpr LinkSet incoming(unsigned levels) {
  return static_cast<LinkSet>(levels << 8);
}

struct Flow {
  std::int32_t task = 0;
  std::int32_t program = 0;
  std::int32_t peer = 0;   // program at the other end; the same for a collective
  LinkSet links = 0;       // at `program`
  LinkSet peer_links = 0;  // at `peer`
  std::int64_t sharing = 1;
  SimTime end{0};
};

class LinkSharing {
 public:
  explicit LinkSharing(std::size_t programs) : users_(programs * links_per_program) {}

  // The flow has `duration` to go at full speed. `moved` collects the flows that now end at
  // another time, the new one included.
  void join(Flow flow, SimTime now, SimTime duration, std::vector<Flow>& moved);
  // The flow of `task` if it ends at `now`: takes it off its links. False: no such flow.
  bool leave(std::int32_t task, SimTime now, std::vector<Flow>& moved);

 private:
  static constexpr std::size_t links_per_program = 16;

  void count(const Flow& flow, std::int32_t change);
  [[nodiscard]] std::int64_t sharing_of(const Flow& flow) const;
  void rebalance(SimTime now, std::vector<Flow>& moved);

  std::vector<std::int32_t> users_;  // by program and link
  std::vector<Flow> flows_;          // in the order they joined
};

}  // namespace shardsim
