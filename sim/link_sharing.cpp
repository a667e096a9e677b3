#include "sim/link_sharing.hpp"

#include <algorithm>
#include <bit>

namespace shardsim {
namespace {

// Calls visit(i) for every bit i of the set.
template <class Visit>
void for_each_link(LinkSet links, Visit visit) {
  for (unsigned rest = links; rest != 0; rest &= rest - 1) {
    visit(static_cast<std::size_t>(std::countr_zero(rest)));
  }
}

}  // namespace

void LinkSharing::count(const Flow& flow, std::int32_t change) {
  const auto at = [&](std::int32_t program, LinkSet links) {
    const std::size_t first = static_cast<std::size_t>(program) * links_per_program;
    for_each_link(links, [&](std::size_t link) { users_[first + link] += change; });
  };
  at(flow.program, flow.links);
  at(flow.peer, flow.peer_links);
}

std::int64_t LinkSharing::sharing_of(const Flow& flow) const {
  std::int64_t most = 1;
  const auto at = [&](std::int32_t program, LinkSet links) {
    const std::size_t first = static_cast<std::size_t>(program) * links_per_program;
    for_each_link(links, [&](std::size_t link) {
      most = std::max<std::int64_t>(most, users_[first + link]);
    });
  };
  at(flow.program, flow.links);
  at(flow.peer, flow.peer_links);
  return most;
}

void LinkSharing::rebalance(SimTime now, std::vector<Flow>& moved) {
  for (Flow& flow : flows_) {
    const std::int64_t sharing = sharing_of(flow);
    if (sharing == flow.sharing) continue;
    const std::int64_t rest = ceil_div((flow.end - now).count(), flow.sharing);
    flow.end = now + SimTime(rest * sharing);
    flow.sharing = sharing;
    moved.push_back(flow);
  }
}

void LinkSharing::join(Flow flow, SimTime now, SimTime duration, std::vector<Flow>& moved) {
  count(flow, 1);
  rebalance(now, moved);
  flow.sharing = sharing_of(flow);
  flow.end = now + flow.sharing * duration;
  flows_.push_back(flow);
  moved.push_back(flow);
}

bool LinkSharing::leave(std::int32_t task, SimTime now, std::vector<Flow>& moved) {
  const auto found = std::find_if(flows_.begin(), flows_.end(), [&](const Flow& flow) {
    return flow.task == task && flow.end == now;
  });
  if (found == flows_.end()) return false;
  count(*found, -1);
  flows_.erase(found);
  rebalance(now, moved);
  return true;
}

}  // namespace shardsim
