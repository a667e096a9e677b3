// The peak of what a plan's buffers take, simulated beside measured on the devices of a backend.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/step_validation.hpp"
#include "validate/backends/backend.hpp"
#include "validate/step/memory_step.hpp"

namespace shardsim {

struct MemoryValidation {
  std::vector<ValidatedMemory> programs;  // all, or none where nothing was measured
  std::vector<std::string> notes;         // why not
};

// All processes replay the buffers of their programs at once. None does where those that share a
// memory need more of it than there is for them. All call it, after check_same_plan(), and get the
// same.
[[nodiscard]] MemoryValidation validate_memory(const Plan& plan, const Result& simulated,
                                               Backend& backend);

// What of a process's memory all others must know.
struct MemoryOffer {
  std::string shared_by;  // DeviceMemory
  Bytes allowance{0};
};
// Nothing where it is enough, else what is short: "buffers of 4 processes on node7 need 12.0 GiB,
// and may take 8.0 GiB". By rank.
[[nodiscard]] std::optional<std::string> memory_shortage(const Plan& plan, const Result& simulated,
                                                         const std::vector<MemoryOffer>& offers);

// What ranks measured, beside what was simulated: of each program the device with the largest peak,
// the first of equal ones.
[[nodiscard]] std::vector<ValidatedMemory> compare_memory(
    const Plan& plan, const Result& simulated, const std::vector<MeasuredMemory>& measured);

}  // namespace shardsim
