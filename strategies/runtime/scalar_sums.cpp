#include "strategies/runtime/scalar_sums.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace shardsim {
namespace {

// An all-reduce of one fp32 scalar, once `after` is there.
Item scalar_sum(SpmdBuilder& builder, const AxisList& axes, const std::string& name, ValueId after,
                Reason reason) {
  const Bytes scalar = size_of(DType::f32);
  const ValueId sum = builder.add_value(builder.value(after).tensor, replicated(0), DType::f32,
                                        BufferCategory::communication);
  builder.value(sum).name = name;
  Item item;
  item.kind = TaskKind::collective;
  item.stream = Stream::reductions;
  item.name = name;
  item.operands = {after};
  item.results = {sum};
  item.collective = {CollectiveKind::all_reduce, axes, {}, {}, DType::f32, scalar,
                     {{name, scalar}},           {},   {}};
  item.reason = std::move(reason);
  return item;
}

}  // namespace

void add_scalar_sums(SpmdBuilder& builder, const AxisList& data_axes, const Runtime& runtime,
                     const Step& step, BlockPass& pass) {
  const bool has_loss = !is_inference(step.kind) && step.kind != StepKind::layer;
  if (data_axes.empty() || !has_loss) return;
  const ValueId loss = builder.step.loss;
  if (runtime.averages_loss) {
    const bool each = runtime.reductions.each_microbatch == ReduceEachMicrobatch::all;
    const std::string name = builder.value(loss).name;
    (each ? pass.reductions : pass.last_reductions)
        .push_back(scalar_sum(builder, data_axes, name, loss, LossAveraged{}));
  }
  std::vector<const char*> parts = {"sum"};
  if (step.microbatches > 1) parts.push_back("count");
  for (const std::string& metric : step.metrics) {
    for (const char* part : parts) {
      pass.last_reductions.push_back(scalar_sum(builder, data_axes,
                                                fmt::format("metrics.{}.{}", metric, part), loss,
                                                MetricSummed{metric}));
    }
  }
}

}  // namespace shardsim
