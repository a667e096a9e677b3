// Why a prediction is no longer what it was, in sentences.
#pragma once

#include <string>
#include <vector>

#include "checks/baseline.hpp"
#include "checks/measure.hpp"

namespace shardsim {

// What the prediction is made of and no longer the same, by suspicion: the experiment (with the
// settings that changed), its model, the machine's profile, its calibration, shardsim.
[[nodiscard]] std::string changed_inputs(const Recorded& before, const Recorded& now);

// Collectives that are new, have grown or run more often, those that send most more first; `part`
// ("all-gather over fsdp", "all-gather") leaves out others, unless it is empty. Without a baseline
// those that send most.
[[nodiscard]] std::vector<std::string> grown_collectives(const Recorded* before,
                                                         const Explanation& now,
                                                         const std::string& part);
// "compute +12.3 ms, exposed communication +30.1 ms".
[[nodiscard]] std::string grown_times(const Recorded& before, const Recorded& now);
// Categories that grew, with their largest buffers; without a baseline the largest.
[[nodiscard]] std::vector<std::string> grown_memory(const Recorded* before, const Recorded& now);
// "sharding of lm_head.weight: P(fsdp, None) -> P(None, None)".
[[nodiscard]] std::vector<std::string> changed_shardings(const Recorded& before,
                                                         const Recorded& now);
// Parameters that are whole everywhere and were not: those with a spec that split them before.
struct NewlyReplicated {
  std::int64_t parameters = 0;     // every layer's own
  std::vector<std::string> texts;  // those that are alike in one
};
[[nodiscard]] NewlyReplicated newly_replicated(const Recorded& before, const Recorded& now,
                                               const SpecTable& specs);
[[nodiscard]] std::vector<std::string> newly_unmatched(const Recorded& before, const Recorded& now);

}  // namespace shardsim
