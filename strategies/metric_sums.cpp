#include "strategies/metric_sums.hpp"

#include <fmt/format.h>

namespace shardsim {

void add_metric_sums(SpmdBuilder& builder, const AxisList& data_axes, ValueId loss,
                     BlockPass& pass) {
  if (data_axes.empty()) return;
  const Bytes scalar = size_of(DType::f32);
  const TensorId loss_tensor = builder.value(loss).tensor;
  for (const std::string& metric : builder.workload().metrics) {
    for (const char* part : {"sum", "count"}) {
      const std::string name = fmt::format("metrics.{}.{}", metric, part);
      const ValueId value =
          builder.add_value(loss_tensor, replicated(0), DType::f32, BufferCategory::communication);
      builder.value(value).name = name;
      Item item;
      item.kind = TaskKind::collective;
      item.stream = Stream::reductions;
      item.name = name;
      item.operands = {loss};
      item.results = {value};
      item.collective = {
          CollectiveKind::all_reduce,
          data_axes,
          {},
          {},
          DType::f32,
          scalar,
          {{name, scalar}},
          fmt::format("metric {} is summed over {}", metric, builder.names(data_axes)),
          fmt::format("leave {} out of \"workload.metrics\"", metric)};
      pass.last_reductions.push_back(std::move(item));
    }
  }
}

}  // namespace shardsim
