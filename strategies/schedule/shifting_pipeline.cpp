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
