#include "sim/step/work_sharing.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace shardsim {

std::int32_t part_of(double share) {
  assert(share >= 0);
  return static_cast<std::int32_t>(std::lround(std::min(share, 1.0) * all_of_it));
}

WorkSharing::WorkSharing(std::size_t resources)
    : resources_(resources),
      shares_(std::vector<Bandwidth>(resources, Bandwidth(static_cast<double>(all_of_it)))) {}

Slot WorkSharing::join(const Uses& uses) {
  Slot slot = static_cast<Slot>(runners_.size());
  if (free_.empty()) {
    runners_.emplace_back();
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  std::int32_t crowded = 0;
  for (const Use& use : uses) {
    change(use.resource, use.part, 0);
    resource(use.resource).users.push_back(slot);
    crowded += resource(use.resource).is_crowded() ? 1 : 0;
  }
  Runner& joined = runner(slot);
  joined.uses = &uses;
  joined.crowded = crowded;
  joined.pace = 0;
  joined.runs = true;
  note(slot);
  return slot;
}

void WorkSharing::leave(Slot slot) {
  Runner& left = runner(slot);
  if (left.is_solved) shares_.leave(slot);
  left.is_solved = false;
  left.runs = false;
  for (const Use& use : *left.uses) {
    std::vector<Slot>& users = resource(use.resource).users;
    users.erase(std::find(users.begin(), users.end(), slot));
    change(use.resource, -std::int64_t{use.part}, 0);
  }
  free_.push_back(slot);
}

void WorkSharing::hold(const Uses& parts) {
  for (const Use& part : parts) change(part.resource, 0, part.part);
}

void WorkSharing::release(const Uses& parts) {
  for (const Use& part : parts) change(part.resource, 0, -std::int64_t{part.part});
}

void WorkSharing::change(ResourceId id, std::int64_t asked, std::int64_t held) {
  Resource& at = resource(id);
  const bool was_crowded = at.is_crowded();
  at.asked += asked;
  at.held += held;
  if (held != 0) shares_.set_capacity(id, Bandwidth(static_cast<double>(at.left())));
  if (at.is_crowded() == was_crowded) return;
  for (const Slot slot : at.users) {
    runner(slot).crowded += was_crowded ? -1 : 1;
    note(slot);
  }
}

void WorkSharing::note(Slot slot) {
  if (runner(slot).is_noted) return;
  runner(slot).is_noted = true;
  noted_.push_back(slot);
}

const std::vector<Slot>& WorkSharing::update_rates() {
  changed_.clear();
  for (const Slot slot : noted_) {
    Runner& noted = runner(slot);
    noted.is_noted = false;
    if (!noted.runs) continue;
    if (noted.crowded > 0) {
      if (!noted.is_solved) solve(slot);
      continue;
    }
    if (noted.is_solved) shares_.leave(slot);
    noted.is_solved = false;
    set_pace(slot, 1);
  }
  noted_.clear();
  for (const network::FlowId flow : shares_.update_rates())
    set_pace(flow, shares_.rate(flow).count());
  return changed_;
}

void WorkSharing::solve(Slot slot) {
  Runner& solved = runner(slot);
  solved.crossings.clear();
  bool is_bound = false;
  for (const Use& use : *solved.uses) {
    solved.crossings.push_back({use.resource, use.part});
    is_bound = is_bound || use.part == all_of_it;
  }
  if (!is_bound) {
    if (solved.limit < 0) solved.limit = shares_.add_link(Bandwidth(1));
    solved.crossings.push_back({solved.limit});
  }
  shares_.join(slot, solved.crossings);
  solved.is_solved = true;
}

void WorkSharing::set_pace(Slot slot, double pace) {
  if (runner(slot).pace == pace) return;
  runner(slot).pace = pace;
  changed_.push_back(slot);
}

}  // namespace shardsim
