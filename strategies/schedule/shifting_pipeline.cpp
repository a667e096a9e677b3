#include "strategies/schedule/shifting_pipeline.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sharding/rule_error.hpp"

namespace shardsim {

std::int64_t ShiftingPipeline::microbatch(std::int64_t iteration, std::int64_t stage,
                                          MicrobatchNumbering numbering) const {
  const std::int64_t age = iteration - stage;
  if (numbering == MicrobatchNumbering::praxis) {
    return std::max(age, std::int64_t{0}) % microbatches;
  }
  // The remainder of numpy, which has the sign of the divisor.
  return (age % microbatches + microbatches) % microbatches;
}

std::int64_t ShiftingPipeline::repeat(std::int64_t iteration, std::int64_t stage) const {
  return std::max(iteration - stage, std::int64_t{0}) / microbatches;
}

PipelineSchedule shifting_schedule(const ShiftingPipeline& pipeline, bool trains) {
  const auto iterations = static_cast<std::int32_t>(pipeline.iterations());
  const auto head = static_cast<std::int16_t>(pipeline.repeats + 1);
  PipelineSchedule schedule;
  schedule.shape = {1, iterations,
                    std::vector<std::int16_t>(static_cast<std::size_t>(head) + 1, 0)};
  std::vector<Action>& actions = schedule.of_rank.emplace_back();
  const auto iteration = [&](ActionKind kind, std::int32_t t) {
    actions.push_back({kind, false, pipeline.layers_in(t), t});
  };
  actions.push_back({ActionKind::forward, false, 0, 0});
  for (std::int32_t t = 0; t < iterations; ++t) iteration(ActionKind::forward, t);
  actions.push_back({ActionKind::forward, false, head, 0});
  if (!trains) return schedule;
  actions.push_back({ActionKind::backward, false, head, 0});
  for (std::int32_t t = iterations; t-- > 0;) iteration(ActionKind::backward, t);
  actions.push_back({ActionKind::backward, false, 0, 0});
  return schedule;
}

bool sends_late(const ShiftingPipeline& pipeline, const Place& place) {
  if (pipeline.microbatches < pipeline.stages) {
    throw RuleError("NotImplementedError", place,
                    fmt::format("{} microbatches: a circular pipeline of {} stages needs as many",
                                pipeline.microbatches, pipeline.stages));
  }
  return pipeline.stages < pipeline.microbatches;
}

std::int64_t stream_offset(const ShiftingPipeline& pipeline, const Place& place) {
  if (pipeline.microbatches % pipeline.stages != 0) {
    throw RuleError("AssertionError", place,
                    fmt::format("{} microbatches cannot be streamed through {} stages",
                                pipeline.microbatches, pipeline.stages));
  }
  return (pipeline.stages - 1) % (pipeline.microbatches / pipeline.stages);
}

}  // namespace shardsim
