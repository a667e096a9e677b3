// A step as simulated beside the same step as it ran on real devices.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/experiment.hpp"
#include "measurements/error_summary.hpp"
#include "measurements/run_on.hpp"

namespace shardsim {

struct Compared {
  Seconds predicted{0};
  Seconds measured{0};

  // Predicted over measured, less 1: 0.1 is a tenth too slow. Nothing where nothing was measured.
  [[nodiscard]] std::optional<double> relative_error() const;
};

struct ValidatedTask {
  std::string program;
  std::string name;
  TaskKind task_kind = TaskKind::kernel;
  std::string kind;               // "all-gather", "matmul", "message"
  std::vector<std::string> axes;  // of a collective
  std::int64_t group_size = 1;    // of a collective
  Bytes payload{0};               // of a kernel what it reads and writes
  Compared time;                  // measured: the median over repeats (validate/step/execute.hpp)
  Seconds low{0};                 // 10th and 90th percentile over repeats
  Seconds high{0};
  std::optional<Seconds> estimated = {};  // by the library itself (NCCL), where it says so
};

struct ComparedBytes {
  Bytes predicted{0};
  Bytes measured{0};

  [[nodiscard]] std::optional<double> relative_error() const;  // as of Compared
};

// What the buffers of a program take at their peak: simulated, and on that of its devices where it
// was most (validate/step/memory_step.hpp).
struct ValidatedMemory {
  std::string program;
  std::int64_t rank = 0;  // of that device
  ComparedBytes peak;
  std::array<ComparedBytes, buffer_categories> by_category{};  // each at its own peak
  Bytes reserved{0};  // the most that was taken from the device for buffers

  // Measured at the peak, in no category: of granules that buffers share and whose first is gone.
  [[nodiscard]] Bytes shared() const;
};
// The largest, whatever its sign; nothing where nothing was measured.
[[nodiscard]] std::optional<double> largest_error(const std::vector<ValidatedMemory>& memory);

struct StepValidation {
  Prediction prediction;  // of the plan as it ran
  RunOn on;
  int repeats = 0;
  double precision = 0;  // half the 95 % interval of the measured step over its median
  bool settled = false;  // as precise as was asked for
  Compared step;
  Seconds step_low{0};  // 10th and 90th percentile over repeats
  Seconds step_high{0};
  std::vector<ValidatedTask> tasks;     // of every program, as they ran
  std::vector<ValidatedMemory> memory;  // of every program; empty where it was not measured
  std::vector<std::string> notes;
};

// Tasks of one kind, over the same axes, with the same payload: the sums, and the errors of each.
struct ValidatedRow {
  std::string kind;
  std::vector<std::string> axes;
  std::int64_t group_size = 1;
  Bytes payload{0};
  std::int64_t count = 0;
  Compared time;
  std::optional<Seconds> estimated = {};  // where it is known of all of them
};
// Collectives first, each in the order of their time.
[[nodiscard]] std::vector<ValidatedRow> rows_of(const std::vector<ValidatedTask>& tasks);

enum class StepPart : std::uint8_t { communication, compute, everything };
// The sum of its tasks.
[[nodiscard]] Compared total_of(const std::vector<ValidatedTask>& tasks, StepPart part);
// Of its tasks, each as one; nothing where none was measured.
[[nodiscard]] std::optional<ErrorSummary> errors_of(const std::vector<ValidatedTask>& tasks,
                                                    StepPart part);

}  // namespace shardsim
