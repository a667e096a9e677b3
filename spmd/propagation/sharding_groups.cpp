#include "spmd/propagation/sharding_groups.hpp"

#include <fmt/format.h>

#include <map>

#include "base/index.hpp"
#include "spmd/propagation/function_editor.hpp"

namespace shardsim::spmd {

using stablehlo::Attribute;
using stablehlo::Function;
using stablehlo::Module;
using stablehlo::Op;
using stablehlo::OpId;

namespace {

// The slots of each group.
std::map<std::int64_t, std::vector<SlotId>> groups_in(const Module& module,
                                                      const Function& function,
                                                      const PropagationGraph& graph) {
  std::map<std::int64_t, std::vector<SlotId>> groups;
  std::map<SlotId, std::int64_t> group_of;
  for (const OpId id : ops_in_order(function)) {
    const Op& op = function.op(id);
    if (op.name != "sdy.sharding_group") continue;
    const Attribute* number = find(op.attributes, "group_id");
    if (number == nullptr) throw InputError(module.place_of(op), "sharding group without group_id");
    const SlotId slot = graph.slot_of[at(op.operands.front())];
    if (slot == no_slot) continue;
    const auto [known, is_new] = group_of.emplace(slot, number->integer);
    std::vector<SlotId>& mine = groups[number->integer];
    if (is_new) {
      mine.push_back(slot);
    } else if (known->second != number->integer) {
      const std::int64_t joined = known->second;
      const std::vector<SlotId> other = std::move(groups[joined]);
      groups.erase(joined);
      for (const SlotId member : other) group_of[member] = number->integer;
      mine.insert(mine.end(), other.begin(), other.end());
    }
  }
  return groups;
}

}  // namespace

void share_in_groups(const Module& module, const Function& function, PropagationGraph& graph) {
  for (const auto& [number, members] : groups_in(module, function, graph)) {
    std::optional<TensorSharding> shared;
    for (const SlotId member : members) {
      const auto& sharding = graph.slots[at(member)].sharding;
      if (sharding && shared && *sharding != *shared) {
        throw InputError({module.file, fmt::format("sharding group {}", number)},
                         "its values are given different shardings");
      }
      if (sharding) shared = sharding;
    }
    for (const SlotId member : members) {
      Slot& slot = graph.slots[at(member)];
      slot.group = members;
      slot.sharding = shared;
    }
  }
}

}  // namespace shardsim::spmd
