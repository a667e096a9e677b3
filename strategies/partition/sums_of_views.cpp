#include "strategies/partition/sums_of_views.hpp"

#include <algorithm>
#include <set>

#include "base/index.hpp"

namespace shardsim {
namespace {

// A product that reads weights, or makes a gradient of them.
bool is_linear(const Workload& workload, const SpmdStep& step, const Item& item) {
  if (item.kind != TaskKind::kernel || item.kernel.kernel_class != KernelClass::matmul)
    return false;
  const auto is_of_weights = [&](ValueId value) {
    const TensorId tensor = step.values[at(value)].tensor;
    if (tensor == no_tensor) return false;
    const TensorRole role = workload.tensors[at(tensor)].role;
    return role == TensorRole::parameter || role == TensorRole::parameter_gradient;
  };
  return std::any_of(item.operands.begin(), item.operands.end(), is_of_weights) ||
         std::any_of(item.results.begin(), item.results.end(), is_of_weights);
}

}  // namespace

void add_beside_views(const Workload& workload, SpmdStep& step) {
  std::set<ValueId> views;
  for (auto block = step.blocks.rbegin(); block != step.blocks.rend(); ++block) {
    for (const Item& item : block->backward.body) {
      if (is_linear(workload, step, item)) views.insert(item.results.begin(), item.results.end());
      if (item.kernel.op != "add" || item.recompute || item.results.size() != 1) continue;
      Value& sum = step.values[at(item.results.front())];
      if (sum.storage != no_value && views.contains(sum.storage)) sum.storage = no_value;
    }
  }
}

}  // namespace shardsim
