#include "hlo/collective_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "hlo/cost.hpp"

namespace shardsim {
namespace {

bool starts_async(const HloModule& module, HloId id) {
  return module.instruction(id).opcode == "custom-call" &&
         custom_call_target(module, id) == "AsyncCollectiveStart";
}

std::string content_of(const Plan& plan, const Collective& collective) {
  std::string text =
      fmt::format("{} {} {} {} {} {} {}", name_of(collective.kind),
                  fmt::join(plan.mesh.names_of(collective.axes), ","), collective.groups,
                  collective.source_targets, name_of(collective.dtype), collective.payload.count(),
                  collective.reason);
  for (const CollectivePart& part : collective.parts) {
    text += fmt::format(" {}={}", part.tensor, part.payload.count());
  }
  return text;
}

}  // namespace

void CollectiveTable::find_async_channels() {
  for (const HloComputation& computation : module_.computations()) {
    bool starts = false;
    for (HloId id = computation.first; id < computation.end; ++id) {
      starts = starts || starts_async(module_, id);
    }
    for (HloId id = computation.first; starts && id < computation.end; ++id) {
      if (collective_opcode(module_.instruction(id).opcode)) {
        async_channels_.insert(channel_of(module_, id));
      }
    }
  }
}

bool CollectiveTable::is_spread(HloId id) const {
  const std::int64_t channel = channel_of(module_, id);
  return channel >= 0 && async_channels_.count(channel) > 0;
}

const HeldCollectives& CollectiveTable::held(HloComputationId computation) {
  const auto known = held_.find(computation);
  if (known != held_.end()) return known->second;
  HeldCollectives inside;
  const HloComputation& body = module_.computation(computation);
  for (HloId id = body.first; id < body.end; ++id) {
    const std::string_view opcode = module_.instruction(id).opcode;
    if (collective_opcode(opcode)) inside.collectives.push_back(id);
    inside.starts = inside.starts || starts_async(module_, id);
    if (opcode == "fusion" || opcode == "fusion-start") {
      const HeldCollectives& deeper = held(module_.callee(id, "calls"));
      inside.collectives.insert(inside.collectives.end(), deeper.collectives.begin(),
                                deeper.collectives.end());
      inside.starts = inside.starts || deeper.starts;
    }
  }
  return held_.emplace(computation, std::move(inside)).first->second;
}

std::int32_t CollectiveTable::entry(HloId id) {
  const auto known = entries_.find(id);
  if (known != entries_.end()) return known->second;
  Collective collective = translate(id);
  const auto next = static_cast<std::int32_t>(plan_.collectives.size());
  const auto [found, is_new] = by_content_.emplace(content_of(plan_, collective), next);
  if (is_new) plan_.collectives.push_back(std::move(collective));
  entries_.emplace(id, found->second);
  return found->second;
}

Collective CollectiveTable::translate(HloId id) {
  HloCollective read = read_collective(module_, id, devices_);
  if (!read.note.empty()) notes_.insert(read.note);
  Collective collective;
  collective.kind = read.kind;
  collective.dtype = read.dtype;
  collective.payload = read.payload;
  collective.parts = std::move(read.parts);
  collective.reason = std::move(read.reason);
  collective.source_targets = std::move(read.pairs);
  if (read.groups.empty()) return collective;
  auto axes = axes_of_groups(plan_.mesh, read.groups);
  if (!axes && read.kind == CollectiveKind::all_reduce) {
    // The order within a group does not matter to a sum.
    for (auto& group : read.groups) std::sort(group.begin(), group.end());
    axes = axes_of_groups(plan_.mesh, read.groups);
  }
  const auto size = static_cast<std::int64_t>(read.groups.front().size());
  if (axes && !axes->empty()) {
    collective.axes = std::move(*axes);
  } else {
    collective.groups = std::move(read.groups);
  }
  if (module_.instruction(id).opcode == "all-reduce" && scatters_.is_scattered(id, size)) {
    collective.kind = CollectiveKind::reduce_scatter;
  }
  return collective;
}

}  // namespace shardsim
