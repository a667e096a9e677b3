// GraphBuilder's parameters: one of a name in a block, trained or not.
#include <cassert>

#include "workloads/graph/graph_builder.hpp"

namespace shardsim {

TensorId GraphBuilder::parameter(const std::string& name, Dims dims) {
  for (std::size_t i = 0; i < workload_.tensors.size(); ++i) {
    const Tensor& known = workload_.tensors[i];
    if (known.role != TensorRole::parameter || known.name != name) continue;
    const Block& owner = workload_.blocks[static_cast<std::size_t>(known.block)];
    if (owner.is_layer && &owner != &block()) continue;
    assert(known.dims == dims);
    return static_cast<TensorId>(i);
  }
  return tensor({name, TensorRole::parameter, compute_dtype_, std::move(dims)});
}

TensorId GraphBuilder::untrained_parameter(const std::string& name, Dims dims) {
  const TensorId id = parameter(name, std::move(dims));
  workload_.tensors[static_cast<std::size_t>(id)].trained = false;
  return id;
}

void GraphBuilder::leave_untrained(const std::string& prefix) {
  const auto here = static_cast<std::int32_t>(workload_.blocks.size()) - 1;
  for (Tensor& known : workload_.tensors) {
    const bool is_here = known.role == TensorRole::parameter && known.block == here;
    if (is_here && known.name.starts_with(prefix)) known.trained = false;
  }
}

}  // namespace shardsim
