#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "strategies/compile/activation_reasons.hpp"

namespace shardsim {

std::string ActivationReasons::gather_embedding_on(const Op& op, const AxisList& axes) const {
  if (kind_of(op) != OpKind::lookup) return "";
  for (const std::vector<Operand>* tensors : {&op.operands, &op.results}) {
    for (const Operand& operand : *tensors) {
      const Tensor& tensor = builder_.tensor(operand.tensor);
      const bool gradient = tensor.role == TensorRole::parameter_gradient;
      const TensorId parameter = gradient ? tensor.primal : operand.tensor;
      const auto table =
          std::find_if(layout_.parameters.begin(), layout_.parameters.end(),
                       [&](const ParameterLayout& one) { return one.tensor == parameter; });
      if (table == layout_.parameters.end()) continue;
      const ParameterLayout& a = *table;
      const bool gathers = std::all_of(axes.begin(), axes.end(), [&](const AxisRef& axis) {
        return overlaps_any(axis, split_axes(a.look_up)) &&
               !overlaps_any(axis, split_axes(a.compute));
      });
      if (!gathers) continue;
      const Bytes whole = shard_elements(a.shape, a.compute) * size_of(tensor.dtype);
      return fmt::format(
          "\"gather_embedding\": true gathers {} instead, and reduces its whole gradient: {} each",
          builder_.tensor(a.tensor).name, format_bytes(whole));
    }
  }
  return "";
}

}  // namespace shardsim
