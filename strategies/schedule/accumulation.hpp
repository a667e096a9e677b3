// The schedule of a step without stages: microbatches one after another, each forward and then
// backward, gradients added up, the optimizer at the end. With one microbatch the plain step.
//
//   3 microbatches   rank 0: 0F0 0B0 0F1 0B1 0F2 0B2 0OPTIMIZER
//   without training rank 0: 0F0 0F1 0F2
//   in pairs         rank 0: 0F0 (0F1;0B0)OVERLAP_F_B (0F2;0B1)OVERLAP_F_B 0B2 0OPTIMIZER
//
// Pairs are those of Megatron-Core's combined 1F1B without a pipeline
// (pipeline_parallel/combined_1f1b.py of core 0.16).
#pragma once

#include <cstdint>

#include "strategies/schedule/schedule.hpp"

namespace shardsim {

[[nodiscard]] PipelineSchedule accumulation_schedule(std::int32_t microbatches, bool trains,
                                                     bool pairs = false);

}  // namespace shardsim
