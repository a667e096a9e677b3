#include "strategies/compile/cached_products.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include "base/index.hpp"
#include "workloads/step/saved_names.hpp"

namespace shardsim {
namespace {

bool is_read(const BlockPass& pass, ValueId value) {
  return std::any_of(pass.body.begin(), pass.body.end(), [&](const Item& item) {
    return std::find(item.operands.begin(), item.operands.end(), value) != item.operands.end();
  });
}

bool is_policy(const Rematerialization& policy) {
  return policy.policy == Rematerialization::Policy::of_jax &&
         policy.save.front() == every_other_product;
}

bool is_kept_call(const Item& item) {
  return is_scatter(item) ||
         (item.kind == TaskKind::collective && item.collective.kind == CollectiveKind::all_to_all);
}

bool repeats(const Item& item, const Item& made) {
  if (!is_kept_call(item) || item.collective.kind != made.collective.kind) return false;
  // Named after what they make, but for the numbers of rows.
  return item.name == made.name + ".recomputed" || (item.recompute && item.name == made.name);
}

// What the repeated call would make is there.
void keep_result(const Item& made, std::size_t repeated, BlockPass& backward, SpmdStep& step) {
  const ValueId there = made.results.front();
  const ValueId again = backward.body[repeated].results.front();
  step.values[at(there)].category = BufferCategory::activations;
  for (Item& item : backward.body) {
    std::replace(item.operands.begin(), item.operands.end(), again, there);
  }
  backward.body.erase(backward.body.begin() + static_cast<std::ptrdiff_t>(repeated));
  for (Write& write : backward.writes) write.after -= write.after > repeated ? 1 : 0;
}

// Of products that the policy names and of calls.
std::vector<ValueId> cached_results(const Block& block, const BlockProgram& program,
                                    bool keeps_calls, const SpmdStep& step) {
  const auto kept = saved_by_policy(block, every_other_product);
  const std::set<TensorId> saved(kept.begin(), kept.end());
  std::vector<ValueId> results;
  for (const Item& item : program.forward.body) {
    const bool is_product =
        item.kind == TaskKind::kernel && item.kernel.kernel_class == KernelClass::matmul;
    for (const ValueId result : item.results) {
      const bool is_saved = is_product && saved.contains(step.values[at(result)].tensor);
      if (is_saved || (keeps_calls && is_kept_call(item))) results.push_back(result);
    }
  }
  return results;
}

// Until the first kernel of the backward pass.
void hold(ValueId result, BlockPass& backward, SpmdStep& step) {
  const auto first = std::find_if(backward.body.begin(), backward.body.end(),
                                  [](const Item& i) { return i.kind == TaskKind::kernel; });
  if (first == backward.body.end() || is_read(backward, result)) return;
  step.values[at(result)].category = BufferCategory::activations;
  first->operands.push_back(result);
}

}  // namespace

void keep_calls(const Workload& workload, const Rematerialization& policy, SpmdStep& step) {
  if (!is_policy(policy)) return;
  for (std::size_t b = 0; b < workload.blocks.size(); ++b) {
    if (!workload.blocks[b].is_layer) continue;
    BlockPass& backward = step.blocks[b].backward;
    for (const Item& made : step.blocks[b].forward.body) {
      if (!is_kept_call(made)) continue;
      const auto repeated = std::find_if(backward.body.begin(), backward.body.end(),
                                         [&](const Item& item) { return repeats(item, made); });
      if (repeated == backward.body.end()) continue;
      const auto place = static_cast<std::size_t>(repeated - backward.body.begin());
      keep_result(made, place, backward, step);
    }
  }
}

void hold_cached_products(const Workload& workload, const Rematerialization& policy,
                          bool keeps_calls, SpmdStep& step) {
  if (!is_policy(policy)) return;
  for (std::size_t b = 0; b < workload.blocks.size(); ++b) {
    if (!workload.blocks[b].is_layer) continue;
    BlockProgram& program = step.blocks[b];
    for (const ValueId result : cached_results(workload.blocks[b], program, keeps_calls, step)) {
      hold(result, program.backward, step);
    }
  }
}

}  // namespace shardsim
