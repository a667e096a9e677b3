// The schedule of a pipeline written as one loop over a shifting buffer, as lingvo's and praxis'
// LayerwiseShardablePipelined do it with GSPMD: in iteration t every stage s works on the
// microbatch that entered s iterations ago, and hands its result to stage s + 1.
//
//   L stages, M microbatches, R repeats (circular: after the last stage back to the first)
//   iterations      M R + L - 1
//   bubble          (L - 1) / iterations
//   stage s works   while s <= t < s + M R
//
// Example: M = 8, L = 4: 11 iterations, 3/11 = 27 % bubble. M = 4, L = 4, R = 2: also 11.
//
// Which microbatch a stage names outside of that range has no effect but differs: lingvo takes
// (t - s + M) mod M, praxis max(t - s, 0) mod M.
//
// Source: tensorflow/lingvo lingvo/jax/layers/pipeline.py at 4c0252f3a; google/praxis
// praxis/layers/pipeline.py.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/error.hpp"
#include "strategies/schedule/schedule.hpp"

namespace shardsim {

enum class MicrobatchNumbering : std::uint8_t { lingvo, praxis };

struct ShiftingPipeline {
  std::int64_t stages = 1;
  std::int64_t microbatches = 1;
  std::int64_t repeats = 1;

  [[nodiscard]] std::int64_t valid_iterations() const { return microbatches * repeats; }
  [[nodiscard]] std::int64_t iterations() const { return valid_iterations() + stages - 1; }
  [[nodiscard]] double bubble_fraction() const {
    return static_cast<double>(stages - 1) / static_cast<double>(iterations());
  }
  [[nodiscard]] bool is_valid(std::int64_t iteration, std::int64_t stage) const {
    return stage <= iteration && iteration < stage + valid_iterations();
  }
  [[nodiscard]] std::int64_t microbatch(std::int64_t iteration, std::int64_t stage,
                                        MicrobatchNumbering numbering) const;
  // The stage of shifting_schedule that an iteration is of: 1 + the first stage's repeat.
  [[nodiscard]] std::int16_t layers_in(std::int64_t iteration) const {
    return static_cast<std::int16_t>(1 + std::min(iteration / microbatches, repeats - 1));
  }
  // In which iteration a microbatch is through with all stages.
  [[nodiscard]] std::int64_t leaves_in(std::int64_t microbatch) const {
    return iterations() - microbatches + microbatch;
  }
  // Which of its `repeats` layers a stage applies.
  [[nodiscard]] std::int64_t repeat(std::int64_t iteration, std::int64_t stage) const;
};

// As one rank does it, whose stages are what is before the loop, the layers of each repeat and what
// is behind: all microbatches at once, called the first, into the loop; its iterations, each called
// a microbatch of its own; all at once through the head, and back. A bubble's iterations are
// computed like others.
[[nodiscard]] PipelineSchedule shifting_schedule(const ShiftingPipeline& pipeline, bool trains);

// Whether a circular pipeline sends from the last stage to the first one iteration late, so that
// the transfer overlaps with work: it needs more microbatches than stages. Throws RuleError
// (NotImplementedError) for fewer microbatches than stages.
[[nodiscard]] bool sends_late(const ShiftingPipeline& pipeline, const Place& place);

// With stream_io inputs and outputs share a buffer of [L, M / L] microbatches; by how many slots of
// the second dimension outputs lie behind their inputs. Throws RuleError (AssertionError) when L
// does not divide M.
[[nodiscard]] std::int64_t stream_offset(const ShiftingPipeline& pipeline, const Place& place);

}  // namespace shardsim
