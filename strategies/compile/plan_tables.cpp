#include "strategies/compile/plan_tables.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "base/index.hpp"

namespace shardsim {
namespace {

constexpr std::int32_t no_name = -1;

template <class Work>
std::int32_t intern(std::vector<Work>& table, const Work& work) {
  const auto found = std::find(table.begin(), table.end(), work);
  if (found != table.end()) return static_cast<std::int32_t>(found - table.begin());
  table.push_back(work);
  return static_cast<std::int32_t>(table.size()) - 1;
}

// Backwards through the body: what makes a value that is needed needs its operands. Values that
// share storage are one, so that what is written in place stays in order.
std::vector<bool> items_for(const std::vector<ValueId>& wanted, const BlockPass& pass,
                            const SpmdStep& step) {
  const auto storage = [&](ValueId id) {
    while (step.values[at(id)].storage != no_value) id = step.values[at(id)].storage;
    return id;
  };
  std::set<ValueId> needed;
  for (const ValueId id : wanted) {
    if (id != no_value) needed.insert(storage(id));
  }
  std::vector<bool> items(pass.body.size(), false);
  for (std::size_t i = pass.body.size(); i-- > 0;) {
    const Item& item = pass.body[i];
    items[i] = std::any_of(item.results.begin(), item.results.end(),
                           [&](ValueId id) { return needed.contains(storage(id)); });
    if (!items[i]) continue;
    for (const ValueId operand : item.operands) needed.insert(storage(operand));
  }
  return items;
}

// Values that passes give back when they end.
std::set<ValueId> given_back(const SpmdStep& step) {
  std::set<ValueId> values;
  for (const BlockProgram& block : step.blocks) {
    for (const BlockPass* pass : {&block.forward, &block.backward}) {
      values.insert(pass->held.begin(), pass->held.end());
    }
  }
  return values;
}

// Nothing where the body reads something gathered that nobody gives back: a table in its shards.
// `first`, `last`: of its gathers.
std::vector<ValueId> kept_of(const BlockPass& pass, std::size_t first, std::size_t last,
                             const std::set<ValueId>& given_back) {
  std::vector<ValueId> kept;
  for (std::size_t g = first; g < last; ++g) {
    for (const ValueId result : pass.gathers[g].results) {
      const bool is_read = std::any_of(pass.body.begin(), pass.body.end(), [&](const Item& item) {
        return std::count(item.operands.begin(), item.operands.end(), result) > 0;
      });
      if (given_back.contains(result)) {
        kept.push_back(result);
      } else if (is_read) {
        return {};
      }
    }
  }
  return kept;
}

}  // namespace

PlanTables::PlanTables(const SpmdStep& step, Plan& plan)
    : step_(step), plan_(plan), value_names_(step.values.size(), no_name) {
  const std::set<ValueId> stay = given_back(step);
  for (const BlockProgram& block : step.blocks) {
    ResolvedBlock& resolved = blocks_.emplace_back();
    resolved.forward = resolve(block.forward, stay);
    resolved.backward = resolve(block.backward, stay);
    resolved.optimizer = resolve(block.optimizer, stay);
    resolved.shared = resolve_all(block.shared);
    resolved.backward.for_input = items_for(block.gradients_of_carries_in, block.backward, step);
  }
}

std::vector<ResolvedItem> PlanTables::resolve_all(const std::vector<Item>& items) {
  std::vector<ResolvedItem> resolved;
  for (const Item& item : items) {
    const std::int32_t work =
        item.kind == TaskKind::collective ? collective(item.collective) : kernel(item.kernel);
    resolved.push_back({&item, work, name(item.name)});
  }
  return resolved;
}

ResolvedPass PlanTables::resolve(const BlockPass& pass, const std::set<ValueId>& given_back) {
  ResolvedPass resolved;
  resolved.pass = &pass;
  const std::size_t gathers = pass.gathers.size();
  const std::size_t within = pass.inner ? pass.inner->gathers : gathers;
  resolved.kept = kept_of(pass, 0, within, given_back);
  resolved.kept_within = kept_of(pass, within, gathers, given_back);
  resolved.gathers = resolve_all(pass.gathers);
  resolved.body = resolve_all(pass.body);
  resolved.reductions = resolve_all(pass.reductions);
  resolved.additions = resolve_all(pass.additions);
  resolved.last_reductions = resolve_all(pass.last_reductions);
  return resolved;
}

std::int32_t PlanTables::name(const std::string& name) {
  const auto [found, added] =
      names_.try_emplace(name, static_cast<std::int32_t>(plan_.names.size()));
  if (added) plan_.names.push_back(name);
  return found->second;
}

std::int32_t PlanTables::name_of_value(ValueId id) {
  std::int32_t& number = value_names_[at(id)];
  if (number == no_name) number = name(step_.values[at(id)].name);
  return number;
}

std::int32_t PlanTables::kernel(const Kernel& kernel) { return intern(plan_.kernels, kernel); }

std::int32_t PlanTables::collective(const Collective& collective) {
  return intern(plan_.collectives, collective);
}

std::int32_t PlanTables::transfer(const Transfer& transfer) {
  return intern(plan_.transfers, transfer);
}

}  // namespace shardsim
