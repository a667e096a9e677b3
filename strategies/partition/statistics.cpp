#include "strategies/partition/statistics.hpp"

#include "strategies/partition/kernel_product.hpp"

namespace shardsim {

void reduce_statistic(SpmdBuilder& builder, const Op& op, const Statistic& statistic,
                      const FactorAxes& factors, Item& item, BlockPass& pass) {
  AxisList axes;
  for (const LabelId factor : statistic.over) {
    const auto found = factors.find(factor);
    if (found != factors.end()) axes.insert(axes.end(), found->second.begin(), found->second.end());
  }
  if (axes.empty()) return;
  const std::int64_t parts = statistic.is_gathered ? Mesh::size_of(axes) : 1;
  const Bytes payload =
      parts * local_points(builder.workload(), statistic.dims, factors) * size_of(statistic.dtype);
  Item reduction;
  reduction.kind = TaskKind::collective;
  reduction.stream = Stream::activations;
  reduction.name = op.name;
  reduction.operands = item.operands;
  axes = merged(axes);
  reduction.reason = OpNeeds{&op, &statistic};
  reduction.collective = {
      statistic.is_gathered ? CollectiveKind::all_gather : CollectiveKind::all_reduce,
      axes,
      {},
      {},
      statistic.dtype,
      payload,
      {{op.name + " " + statistic.name, payload}},
      {},
      {}};
  // The op waits for it through a value of its own.
  const ValueId value = builder.add_value(
      op.results.front().tensor, replicated(builder.tensor(op.results.front().tensor).dims.size()),
      statistic.dtype, BufferCategory::communication);
  builder.value(value).name = op.name + " " + statistic.name;
  builder.value(value).bytes = payload;
  reduction.results = {value};
  item.operands.push_back(value);
  pass.body.push_back(std::move(reduction));
}

}  // namespace shardsim
