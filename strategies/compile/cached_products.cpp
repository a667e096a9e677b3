#include "strategies/compile/cached_products.hpp"

#include <algorithm>
#include <set>

#include "base/index.hpp"
#include "workloads/step/saved_names.hpp"

namespace shardsim {
namespace {

bool is_read(const BlockPass& pass, ValueId value) {
  return std::any_of(pass.body.begin(), pass.body.end(), [&](const Item& item) {
    return std::find(item.operands.begin(), item.operands.end(), value) != item.operands.end();
  });
}

}  // namespace

void hold_cached_products(const Workload& workload, const Rematerialization& policy,
                          SpmdStep& step) {
  const bool caches = policy.policy == Rematerialization::Policy::of_jax &&
                      policy.save.front() == every_other_product;
  if (!caches) return;
  for (std::size_t b = 0; b < workload.blocks.size(); ++b) {
    BlockPass& backward = step.blocks[b].backward;
    const auto first = std::find_if(backward.body.begin(), backward.body.end(),
                                    [](const Item& i) { return i.kind == TaskKind::kernel; });
    if (!workload.blocks[b].is_layer || first == backward.body.end()) continue;
    const auto kept = saved_by_policy(workload.blocks[b], every_other_product);
    const std::set<TensorId> saved(kept.begin(), kept.end());
    for (const Item& item : step.blocks[b].forward.body) {
      if (item.kernel.kernel_class != KernelClass::matmul || item.kind != TaskKind::kernel)
        continue;
      for (const ValueId result : item.results) {
        Value& value = step.values[at(result)];
        if (!saved.contains(value.tensor) || is_read(backward, result)) continue;
        value.category = BufferCategory::activations;
        first->operands.push_back(result);
      }
    }
  }
}

}  // namespace shardsim
