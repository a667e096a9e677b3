#include "strategies/runtime/shared_gradients.hpp"

#include <fmt/format.h>

#include <utility>

namespace shardsim {

SharedGradients::SharedGradients(const Workload& workload, const Mesh& mesh,
                                 const std::string& stages_axis) {
  for (std::size_t t = 0; t < workload.tensors.size(); ++t) {
    const TensorId original = workload.tensors[t].copy_of;
    if (original != no_tensor) shared_.insert({original, static_cast<TensorId>(t)});
  }
  if (shared_.empty()) return;
  for (const auto& column : mesh.groups({mesh.whole(*mesh.find(stages_axis))})) {
    groups_.push_back({column.front(), column.back()});
  }
}

ValueId SharedGradients::add_up(SpmdBuilder& builder, TensorId parameter, ValueId gradient,
                                std::vector<Item>& items) const {
  const TensorId copied = builder.tensor(parameter).copy_of;
  const TensorId original = copied == no_tensor ? parameter : copied;
  const std::string name = fmt::format("{} gradient", builder.tensor(original).name);
  const Value value = builder.value(gradient);
  const ValueId sum = builder.add_view(gradient, value.sharding);
  Item item;
  item.kind = TaskKind::collective;
  item.stream = Stream::reductions;
  item.name = name;
  item.operands = {gradient};
  item.results = {sum};
  item.collective.kind = CollectiveKind::all_reduce;
  item.collective.groups = groups_;
  item.collective.dtype = value.dtype;
  item.collective.payload = value.bytes;
  item.collective.parts = {{name, value.bytes}};
  item.reason = SharedAddedUp{original};
  items.push_back(std::move(item));
  return sum;
}

}  // namespace shardsim
