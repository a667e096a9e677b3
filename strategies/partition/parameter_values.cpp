#include "strategies/partition/parameter_values.hpp"

#include <vector>

#include "base/index.hpp"

namespace shardsim {
namespace {

// The type in which look-ups read a table.
DType look_up_type(const SpmdBuilder& builder, TensorId parameter) {
  const DType compute_dtype = builder.tensor(parameter).dtype;
  for (const Block& block : builder.workload().blocks) {
    for (const Op& op : block.forward) {
      if (kind_of(op) != OpKind::lookup || op.operands[1].tensor != parameter) continue;
      return op.weight_dtype.value_or(compute_dtype);
    }
  }
  return compute_dtype;
}

bool is_read_but_by_look_ups(const Workload& workload, TensorId parameter) {
  for (const Block& block : workload.blocks) {
    for (const std::vector<Op>* ops : {&block.forward, &block.backward}) {
      for (const Op& op : *ops) {
        if (kind_of(op) == OpKind::lookup) continue;
        for (const Operand& operand : op.operands) {
          if (operand.tensor == parameter) return true;
        }
      }
    }
  }
  return false;
}

ParameterValues add_parameter(SpmdBuilder& builder, const ParameterLayout& layout,
                              DType step_dtype) {
  const TensorId parameter = layout.tensor;
  const DType compute_dtype = builder.tensor(parameter).dtype;
  const DType stored_dtype = builder.tensor(parameter).stored_as_read ? compute_dtype : step_dtype;
  const DType look_up_dtype = look_up_type(builder, parameter);
  const auto gathered = [&](const Sharding& sharding, DType dtype) {
    return builder.add_value(parameter, sharding, dtype, BufferCategory::gathered_parameters);
  };
  ParameterValues values;
  values.stored =
      builder.add_value(parameter, layout.stored, stored_dtype, BufferCategory::parameters);
  builder.value(values.stored).persistent = true;
  values.computed = values.looked_up = values.stored;
  const bool looked_up_apart = layout.look_up != layout.compute || look_up_dtype != compute_dtype;
  const bool looked_up_as_stored = layout.look_up == layout.stored && look_up_dtype == stored_dtype;
  if (looked_up_apart && !looked_up_as_stored) {
    values.looked_up = gathered(layout.look_up, look_up_dtype);
  }
  if (looked_up_apart && !is_read_but_by_look_ups(builder.workload(), parameter)) return values;
  if (layout.stored != layout.compute || stored_dtype != compute_dtype) {
    values.computed = gathered(layout.compute, compute_dtype);
  }
  if (!looked_up_apart) values.looked_up = values.computed;
  return values;
}

}  // namespace

std::vector<bool> read_by_ops(const Workload& workload) {
  std::vector<bool> read(workload.tensors.size());
  for (const Block& block : workload.blocks) {
    for (const Op& op : block.forward) {
      for (const Operand& operand : op.operands) read[at(operand.tensor)] = true;
    }
  }
  return read;
}

void add_parameters(SpmdBuilder& builder, const Layout& layout) {
  const std::vector<bool> read = read_by_ops(builder.workload());
  for (const ParameterLayout& one : layout.parameters) {
    ParameterValues values = add_parameter(builder, one, layout.stored_dtype);
    if (!read[at(one.tensor)]) values.computed = values.looked_up = values.stored;
    builder.step.parameters[one.tensor] = values;
  }
}

}  // namespace shardsim
