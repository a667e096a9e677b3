// What works that run at the same time leave each other of the resources that they use.
//
// Alone a work goes at full pace, 1, and takes a share of each resource that it uses: of the one
// that bounds it all, of others less. Works at paces x take sum(share * x) of a resource, at most
// all of it. They all grow at one pace; where a resource is full the works on it stay, and the
// others grow on to 1. As what bounds a work is a resource of which it takes all, that is dominant
// resource fairness (Ghodsi et al., NSDI 2011).
//
// A work may also hold a part of a resource, as long as it runs, whatever its pace: others share
// the rest. (A thread block of NCCL keeps its multiprocessor while it waits for its peers.)
//
// Example: A takes all of NVLink, B all of a NIC and a quarter of NVLink.
//   1.25 x = 1: both go at 0.8. If C holds half of NVLink, 1.25 x = 0.5: both at 0.4.
//
// The solver is that of flows (network/fair_share.hpp): a resource is a link of 2^30 B/s, a work at
// full pace crosses it with share * 2^30 flows of 1 B/s. Shares are whole numbers, so that what
// they add up to does not depend on their order. Only what is on a resource that has more than all
// of it asked for comes before the solver; the rest goes at 1.
//
// Cost of join and leave: O(uses); where a resource becomes crowded or no longer is, O(its users);
// of update_rates() that of the solver, for what is crowded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/network/fair_share.hpp"

namespace shardsim {

using ResourceId = std::int32_t;
using Slot = std::int32_t;  // a work that runs

struct Use {
  ResourceId resource = 0;
  std::int32_t part = 0;  // part_of(share)
  friend auto operator<=>(const Use&, const Use&) = default;
};
using Uses = std::vector<Use>;

inline constexpr std::int32_t all_of_it = std::int32_t{1} << 30;
// Of a share in [0, 1], to the nearest; of one above 1 all of it.
[[nodiscard]] std::int32_t part_of(double share);

class WorkSharing {
 public:
  explicit WorkSharing(std::size_t resources);

  // No resource twice. What it uses is referred to until it leaves. The slot may be used again
  // after that.
  Slot join(const Uses& uses);
  void leave(Slot slot);
  void hold(const Uses& parts);
  void release(const Uses& parts);

  // Shares anew what has changed since the last call. Gives those that go at another pace now, in
  // no particular but always the same order; valid until the next call.
  const std::vector<Slot>& update_rates();
  // 0 where others hold all of a resource.
  [[nodiscard]] double pace(Slot slot) const { return runner(slot).pace; }

 private:
  struct Resource {
    std::int64_t asked = 0;  // parts of all that run, at full pace
    std::int64_t held = 0;
    std::vector<Slot> users;

    [[nodiscard]] std::int64_t left() const { return held < all_of_it ? all_of_it - held : 0; }
    [[nodiscard]] bool is_crowded() const { return asked > left(); }
  };
  struct Runner {
    const Uses* uses = nullptr;
    std::vector<network::Crossing> crossings;  // for the solver
    network::LinkId limit = -1;  // a link of its own, where nothing else keeps it to 1
    std::int32_t crowded = 0;    // resources that it uses
    double pace = 0;
    bool runs = false;
    bool is_solved = false;  // the solver knows it
    bool is_noted = false;
  };

  [[nodiscard]] Resource& resource(ResourceId id) {
    return resources_[static_cast<std::size_t>(id)];
  }
  [[nodiscard]] Runner& runner(Slot slot) { return runners_[static_cast<std::size_t>(slot)]; }
  [[nodiscard]] const Runner& runner(Slot slot) const {
    return runners_[static_cast<std::size_t>(slot)];
  }
  void change(ResourceId id, std::int64_t asked, std::int64_t held);
  void note(Slot slot);
  void solve(Slot slot);
  void set_pace(Slot slot, double pace);

  std::vector<Resource> resources_;
  std::vector<Runner> runners_;
  std::vector<Slot> free_;
  network::FairShare shares_;
  std::vector<Slot> noted_;  // whose resources have become crowded or no longer are
  std::vector<Slot> changed_;
};

}  // namespace shardsim
