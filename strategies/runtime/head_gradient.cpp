#include "strategies/runtime/head_gradient.hpp"

#include <algorithm>

#include "base/index.hpp"
#include "strategies/key_place.hpp"

namespace shardsim {
namespace {

bool has_vocabulary(const Workload& workload, TensorId parameter) {
  const std::vector<Dim>& dims = workload.tensors[at(parameter)].dims;
  return std::any_of(dims.begin(), dims.end(), [&](const Dim& dim) {
    return std::any_of(dim.begin(), dim.end(), [&](LabelId label) {
      return workload.labels[at(label)].role == LabelRole::vocab;
    });
  });
}

}  // namespace

std::optional<std::size_t> head_gradient_item(const Workload& workload, const BlockProgram& block) {
  for (const Write& write : block.backward.writes) {
    if (write.after == 0 || !has_vocabulary(workload, write.parameter)) continue;
    const Item& item = block.backward.body[write.after - 1];
    if (item.kernel.kernel_class == KernelClass::matmul) return write.after - 1;
  }
  return std::nullopt;
}

void check_head_gradient(const Strategy& strategy, const Workload& workload, const SpmdStep& step) {
  const bool waits = strategy.runtime.late_head_gradients > 0 && strategy.pipeline;
  if (!waits || !has_backward(workload) || head_gradient_item(workload, step.blocks.back())) return;
  const bool is_megatron = strategy.name == "megatron";
  throw InputError(
      place_of_key(strategy.place,
                   is_megatron ? "overlap/embedding_gradient" : "late_head_gradients"),
      "needs one product that makes the gradient of the head's weights: no multi-token prediction, "
      "and gradients that products add up (\"gradient_buffer\" with \"adds_in_products\")");
}

}  // namespace shardsim
