// What runs plans on real devices: a process for each, joined by a communication library.
//
// An implementation is one class: MpiBackend for CPUs (mpi_backend.hpp), NcclBackend for GPUs
// (nccl_backend.hpp). All member functions are called by all processes, in the same order and with
// the same plan; what differs between them is the rank in their Exchange.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "measurements/device_sweep.hpp"
#include "plan/plan.hpp"
#include "validate/backends/device_memory.hpp"
#include "validate/exchange/exchange.hpp"

namespace shardsim {

// When a process ran a task.
struct TaskSpan {
  Seconds start{0};
  Seconds end{0};
};

// Of which kernels a sweep of such devices is made.
struct WorkRange {
  std::vector<DType> products;     // types of their elements
  std::int64_t smallest_side = 1;  // of square products; powers of two
  std::int64_t largest_side = 1;
  Bytes most_moved{0};  // by kernels of class memory, and by copies
  bool copies = false;  // between device and host are there
};

class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  [[nodiscard]] virtual Exchange& exchange() const = 0;   // ranks are positions in a plan's mesh
  [[nodiscard]] virtual std::string name() const = 0;     // "mpi"
  [[nodiscard]] virtual std::string profile() const = 0;  // shipped, of such devices: "cpu-host"
  [[nodiscard]] virtual std::string library() const = 0;  // "Open MPI 4.1.4"
  [[nodiscard]] virtual std::string host() const = 0;     // of this process
  // How tasks are run that are not what the plan says to the letter; empty: none.
  [[nodiscard]] virtual std::vector<std::string> notes() const = 0;

  // Streams of a program run side by side, as simulated; else one behind the other.
  [[nodiscard]] virtual bool overlaps_streams() const = 0;
  // The spans of all processes are on one clock; else each is on its process's own.
  [[nodiscard]] virtual bool shares_clock() const = 0;

  // What it is: its name, clocks, driver; texts by what they are of.
  [[nodiscard]] virtual std::map<std::string, std::string> device() const = 0;
  // Of the device by this process so far.
  [[nodiscard]] virtual std::vector<MemoryTaken> memory_taken() const = 0;
  [[nodiscard]] virtual WorkRange range() const = 0;
  // For collectives of that kind in plans that are prepared from now on, as the library names it;
  // empty: its own choice. Throws InputError for a name that it does not have.
  virtual void choose_algorithm(CollectiveKind kind, const std::string& algorithm) = 0;

  // Takes memory and joins groups for `plan`, of which this process runs the program with its
  // position. The plan outlives its steps. Throws InputError for what cannot be run: meshes of
  // another size, messages beyond what the library counts.
  virtual void prepare(const Plan& plan) = 0;
  // What the library itself expects every collective of the plan to take, by index, nothing where
  // it does not say.
  [[nodiscard]] virtual std::vector<std::optional<Seconds>> estimates() = 0;
  // Runs the step once, all processes beginning together: when each task of this process's program
  // ran. Where there is one core for all streams, tasks run in the order of the program.
  [[nodiscard]] virtual std::vector<TaskSpan> run_step() = 0;

  // Memory of this process's device, for nothing but buffers; null where it cannot be measured, for
  // all processes alike.
  [[nodiscard]] virtual std::unique_ptr<DeviceMemory> memory() = 0;
};

// Index of the program of the device at `position`. Throws std::logic_error where none has it.
[[nodiscard]] std::size_t program_at(const Plan& plan, std::int64_t position);

// For who waits in vain for it: "all-gather of 4 MiB (layers.0.mlp)".
[[nodiscard]] std::string task_in_words(const Plan& plan, const Task& task);

// Throws InputError on every process whose plan is not that of the first: versions of the program,
// files or flags differ.
void check_same_plan(Exchange& exchange, const Plan& plan);

}  // namespace shardsim
