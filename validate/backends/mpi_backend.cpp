#include "validate/backends/mpi_backend.hpp"

#include <fmt/format.h>
#include <mpi.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <thread>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/text.hpp"
#include "validate/backends/cpu_memory.hpp"
#include "validate/backends/cpu_work.hpp"
#include "validate/exchange/mpi_algorithms.hpp"
#include "validate/exchange/mpi_calls.hpp"

namespace shardsim {
namespace {

using Clock = std::chrono::steady_clock;

std::int64_t most_on_a_host(const std::vector<std::string>& hosts) {
  std::int64_t most = 0;
  for (const std::string& host : hosts) {
    most = std::max<std::int64_t>(most, std::count(hosts.begin(), hosts.end(), host));
  }
  return most;
}

class MpiBackend : public Backend {
 public:
  MpiBackend(Exchange& exchange, Watchdog& watchdog) : exchange_(exchange), watchdog_(watchdog) {}

  [[nodiscard]] Exchange& exchange() const override { return exchange_; }
  [[nodiscard]] std::string name() const override { return "mpi"; }
  [[nodiscard]] std::string profile() const override { return "cpu-host"; }
  [[nodiscard]] std::string library() const override;
  [[nodiscard]] std::string host() const override;
  [[nodiscard]] std::vector<std::string> notes() const override;
  [[nodiscard]] bool overlaps_streams() const override { return false; }
  [[nodiscard]] bool shares_clock() const override { return true; }
  [[nodiscard]] std::map<std::string, std::string> device() const override;
  [[nodiscard]] std::vector<MemoryTaken> memory_taken() const override { return {}; }
  [[nodiscard]] WorkRange range() const override;
  void choose_algorithm(CollectiveKind kind, const std::string& algorithm) override;
  void prepare(const Plan& plan) override;
  [[nodiscard]] std::vector<std::optional<Seconds>> estimates() override { return {}; }
  [[nodiscard]] std::vector<TaskSpan> run_step() override;
  [[nodiscard]] std::unique_ptr<DeviceMemory> memory() override {
    return std::make_unique<CpuMemory>(host());
  }

 private:
  [[nodiscard]] Seconds now() const;  // by the clock of rank 0
  [[nodiscard]] Seconds clock_ahead();
  void run(const Task& task);

  Exchange& exchange_;
  Watchdog& watchdog_;
  std::int64_t most_on_a_host_ = 1;  // processes
  Seconds ahead_{0};                 // of rank 0's clock
  MpiCalls calls_;
  CpuWork work_;
  const Plan* plan_ = nullptr;
  const Program* program_ = nullptr;
  std::vector<std::string> names_;  // of the program's tasks, for who waits in vain
};

std::string MpiBackend::library() const {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  check_mpi(MPI_Get_library_version(text.data(), &length));
  const std::string whole(text.data(), at(length));
  return whole.substr(0, whole.find_first_of(",\n"));
}

std::string MpiBackend::host() const {
  std::array<char, MPI_MAX_PROCESSOR_NAME> text{};
  int length = 0;
  check_mpi(MPI_Get_processor_name(text.data(), &length));
  return {text.data(), at(length)};
}

std::vector<std::string> MpiBackend::notes() const {
  std::vector<std::string> told = {
      "streams one behind the other: a core computes or communicates",
      "matmuls and attention as fp32 products of as many operations and elements",
      "reductions as sums of fp32 of as many bytes"};
  const std::int64_t cores = std::thread::hardware_concurrency();
  if (most_on_a_host_ > cores) {
    told.push_back(fmt::format(
        "{} processes on the {} of a host take turns: their times are not those of the work alone",
        most_on_a_host_, counted(cores, "core")));
  }
  return told;
}

std::map<std::string, std::string> MpiBackend::device() const {
  utsname system{};
  if (uname(&system) != 0) return {};
  return {{"system", fmt::format("{} {}", system.sysname, system.release)},
          {"machine", system.machine}};
}

// Up to what no cache of a core holds.
WorkRange MpiBackend::range() const {
  constexpr std::int64_t smallest = 32;
  constexpr std::int64_t largest = 512;
  return {{DType::f32}, smallest, largest, Bytes(64 * MiB), false};
}

void MpiBackend::choose_algorithm(CollectiveKind kind, const std::string& algorithm) {
  if (!choose_mpi_algorithm(kind, algorithm)) return;
  calls_.forget_groups();  // they were made for the one before
}

void MpiBackend::prepare(const Plan& plan) {
  const std::int64_t devices = plan.mesh.devices();
  if (devices != exchange_.size()) {
    throw InputError({"", "/mesh"},
                     fmt::format("a mesh of {} for MPI's {}: mpirun -n {}",
                                 counted(devices, "device"), exchange_.size(), devices));
  }
  const std::vector<std::string> hosts = exchange_.all_gather(host());
  most_on_a_host_ = most_on_a_host(hosts);
  ahead_ = most_on_a_host_ == exchange_.size() ? Seconds(0) : clock_ahead();
  plan_ = &plan;
  const std::size_t program = program_at(plan, exchange_.rank());
  program_ = &plan.programs[program];
  watchdog_.tell("a split into groups");
  calls_.prepare(plan, program);
  watchdog_.rest();
  names_.clear();
  for (const Task& task : program_->tasks) names_.push_back(task_in_words(plan, task));
}

void MpiBackend::run(const Task& task) {
  switch (task.kind) {
    case TaskKind::kernel:
      return work_.run(plan_->kernels[at(task.work)]);
    case TaskKind::collective:
      return calls_.run_collective(at(task.work));
    case TaskKind::transfer:
      return calls_.run_transfer(at(task.work));
    case TaskKind::to_host:
    case TaskKind::from_host:
      return;  // refused before
  }
}

Seconds MpiBackend::now() const {
  return Seconds(std::chrono::duration<double>(Clock::now().time_since_epoch()).count()) - ahead_;
}

// How far this process's clock is ahead of rank 0's, which answers all others one after the other:
// what it says was its time is halfway through the shortest exchange (Cristian, Distributed
// Computing 3, 1989).
Seconds MpiBackend::clock_ahead() {
  constexpr int exchanges = 100;
  constexpr int tag = 2;
  ahead_ = Seconds(0);
  Seconds shortest{std::numeric_limits<double>::infinity()};
  Seconds ahead{0};
  watchdog_.tell("the clocks of all processes");
  for (int other = 1; other < exchange_.size(); ++other) {
    for (int i = 0; i < exchanges; ++i) {
      double theirs = now().count();
      if (exchange_.rank() == 0) {
        check_mpi(MPI_Recv(nullptr, 0, MPI_DOUBLE, other, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        theirs = now().count();
        check_mpi(MPI_Send(&theirs, 1, MPI_DOUBLE, other, tag, MPI_COMM_WORLD));
      } else if (exchange_.rank() == other) {
        const Seconds begin = now();
        check_mpi(MPI_Send(nullptr, 0, MPI_DOUBLE, 0, tag, MPI_COMM_WORLD));
        check_mpi(MPI_Recv(&theirs, 1, MPI_DOUBLE, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        const Seconds end = now();
        if (end - begin >= shortest) continue;
        shortest = end - begin;
        ahead = (begin + end) / 2 - Seconds(theirs);
      }
    }
  }
  watchdog_.rest();
  return ahead;
}

std::vector<TaskSpan> MpiBackend::run_step() {
  std::vector<TaskSpan> spans(program_->tasks.size());
  watchdog_.tell("the beginning of a step");
  check_mpi(MPI_Barrier(MPI_COMM_WORLD));
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const Task& task = program_->tasks[i];
    watchdog_.tell(names_[i]);
    spans[i].start = now();
    run(task);
    spans[i].end = now();
  }
  calls_.finish();
  watchdog_.rest();
  return spans;
}

}  // namespace

std::unique_ptr<Backend> make_mpi_backend(Exchange& exchange, Watchdog& watchdog) {
  return std::make_unique<MpiBackend>(exchange, watchdog);
}

}  // namespace shardsim
