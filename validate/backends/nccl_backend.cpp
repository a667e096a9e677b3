#include "validate/backends/nccl_backend.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <thread>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/text.hpp"
#include "validate/backends/cuda_memory.hpp"
#include "validate/backends/cuda_work.hpp"
#include "validate/backends/nccl_calls.hpp"
#include "validate/fit/gpu_profile.hpp"

namespace shardsim {
namespace {

// 13000 is 13.0.
std::string cuda_version(int version) {
  constexpr int major = 1000;
  constexpr int minor = 10;
  return fmt::format("{}.{}", version / major, version % major / minor);
}

// 22809 is 2.28.9 (nccl.h, NCCL_VERSION).
std::string nccl_version(int version) {
  constexpr int major = 10000;
  constexpr int minor = 100;
  return fmt::format("{}.{}.{}", version / major, version % major / minor, version % minor);
}

class NcclBackend : public Backend {
 public:
  NcclBackend(Exchange& exchange, Watchdog& watchdog, int device);

  [[nodiscard]] Exchange& exchange() const override { return exchange_; }
  [[nodiscard]] std::string name() const override { return "nccl"; }
  [[nodiscard]] std::string profile() const override;
  [[nodiscard]] std::string library() const override;
  [[nodiscard]] std::string host() const override;
  [[nodiscard]] std::vector<std::string> notes() const override;
  [[nodiscard]] bool overlaps_streams() const override { return true; }
  [[nodiscard]] bool shares_clock() const override { return false; }
  [[nodiscard]] std::map<std::string, std::string> device() const override;
  [[nodiscard]] std::vector<MemoryTaken> memory_taken() const override;
  [[nodiscard]] WorkRange range() const override;
  void choose_algorithm(CollectiveKind kind, const std::string& algorithm) override {
    calls_.choose_algorithm(kind, algorithm);
  }
  void prepare(const Plan& plan) override;
  [[nodiscard]] std::vector<std::optional<Seconds>> estimates() override;
  [[nodiscard]] std::vector<TaskSpan> run_step() override;
  [[nodiscard]] std::unique_ptr<DeviceMemory> memory() override;

 private:
  struct Timed {
    cuda::Event start;
    cuda::Event end;
  };

  void begin_together();
  void launch(std::size_t index);  // a task
  void wait_for_all();
  [[nodiscard]] Seconds since_begin(const cuda::Event& event) const;

  [[nodiscard]] static Bytes taken();  // of the device, by all

  Exchange& exchange_;
  Watchdog& watchdog_;
  int device_;
  cudaDeviceProp properties_{};
  Bytes of_context_{0};
  Bytes of_work_{0};
  Bytes of_calls_{0};
  std::vector<cuda::Stream> streams_;  // as many as any program has had
  cuda::Event begin_;
  NcclCalls calls_;
  CudaWork work_;
  const Plan* plan_ = nullptr;
  const Program* program_ = nullptr;
  std::vector<Timed> timed_;        // tasks of the program
  std::vector<std::string> names_;  // of them, for who waits in vain
};

NcclBackend::NcclBackend(Exchange& exchange, Watchdog& watchdog, int device)
    : exchange_(exchange), watchdog_(watchdog), device_(device), calls_(exchange) {
  check_cuda(cudaSetDevice(device));
  check_cuda(cudaGetDeviceProperties(&properties_, device));
  begin_ = cuda::event();
  of_context_ = taken();
}

Bytes NcclBackend::taken() {
  std::size_t left = 0;
  std::size_t all = 0;
  check_cuda(cudaMemGetInfo(&left, &all));
  return Bytes(static_cast<std::int64_t>(all - left));
}

std::string NcclBackend::profile() const {
  std::string profile = shipped_profile_of(properties_.name);
  if (!profile.empty()) return profile;
  throw InputError({"command line", "/machine"},
                   fmt::format("no shipped profile is of {}: name one", properties_.name));
}

std::string NcclBackend::library() const {
  int nccl = 0;
  int runtime = 0;
  int driver = 0;
  check_nccl(ncclGetVersion(&nccl));
  check_cuda(cudaRuntimeGetVersion(&runtime));
  check_cuda(cudaDriverGetVersion(&driver));
  return fmt::format("NCCL {}, CUDA {}, a driver for CUDA {}, {}", nccl_version(nccl),
                     cuda_version(runtime), cuda_version(driver), properties_.name);
}

std::string NcclBackend::host() const {
  constexpr std::size_t longest = 256;
  std::array<char, longest> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

std::vector<std::string> NcclBackend::notes() const {
  return {
      "matmuls and attention as products of as many operations and elements by cuBLAS, their "
      "sides multiples of 8",
      "other kernels as sums of arrays in memory of as many bytes: caches help none of them",
      "the host launches every task, between two events: what that costs is part of the step"};
}

// Clocks are those that it may reach, not those of the moment.
std::map<std::string, std::string> NcclBackend::device() const {
  const auto attribute = [&](cudaDeviceAttr which) {
    int value = 0;
    check_cuda(cudaDeviceGetAttribute(&value, which, device_));
    return value;
  };
  int driver = 0;
  check_cuda(cudaDriverGetVersion(&driver));
  constexpr int kilo = 1000;
  return {
      {"name", properties_.name},
      {"driver", fmt::format("for CUDA {}", cuda_version(driver))},
      {"compute capability", fmt::format("{}.{}", properties_.major, properties_.minor)},
      {"multiprocessors", std::to_string(properties_.multiProcessorCount)},
      {"memory", format_bytes(Bytes(static_cast<std::int64_t>(properties_.totalGlobalMem)))},
      {"clock", fmt::format("up to {} MHz", attribute(cudaDevAttrClockRate) / kilo)},
      {"memory clock", fmt::format("up to {} MHz", attribute(cudaDevAttrMemoryClockRate) / kilo)}};
}

// By what is left before and after: other processes on the device count as the context's, and what
// they take and give back in between as anybody's.
std::vector<MemoryTaken> NcclBackend::memory_taken() const {
  const auto at_least_none = [](Bytes bytes) { return std::max(bytes, Bytes(0)); };
  return {{"context", of_context_},
          {"cuBLAS and operands", at_least_none(of_work_)},
          {"communicators and their buffers", at_least_none(of_calls_)}};
}

// Up to a MiB of n by n: products that take milliseconds.
WorkRange NcclBackend::range() const {
  constexpr std::int64_t smallest = 128;
  constexpr std::int64_t largest = 8192;
  WorkRange range{{DType::bf16, DType::f16, DType::f32}, smallest, largest, Bytes(GiB), true};
  const int capability = 10 * properties_.major + properties_.minor;
  if (capability >= Fp8Products::least_capability) range.products.push_back(DType::f8);
  return range;
}

void NcclBackend::prepare(const Plan& plan) {
  const std::int64_t devices = plan.mesh.devices();
  if (devices != exchange_.size()) {
    throw InputError({"", "/mesh"},
                     fmt::format("a mesh of {} for {} of NCCL", counted(devices, "device"),
                                 counted(exchange_.size(), "rank")));
  }
  const std::size_t index = program_at(plan, exchange_.rank());
  plan_ = &plan;
  program_ = &plan.programs[index];
  while (streams_.size() < program_->streams.size()) streams_.push_back(cuda::stream());
  watchdog_.tell("memory for the plan");
  const Bytes before = taken();
  work_.prepare(plan, streams_);
  of_work_ += taken() - before;
  watchdog_.tell("communicators of NCCL");
  const Bytes between = taken();
  calls_.prepare(plan, index);
  of_calls_ += taken() - between;
  watchdog_.rest();
  timed_.clear();
  names_.clear();
  for (const Task& task : program_->tasks) {
    timed_.push_back({cuda::event(), cuda::event()});
    names_.push_back(task_in_words(plan, task));
  }
}

std::vector<std::optional<Seconds>> NcclBackend::estimates() {
  std::vector<std::optional<Seconds>> all;
  for (std::size_t i = 0; i < plan_->collectives.size(); ++i) all.push_back(calls_.estimate(i));
  return all;
}

// Streams wait for the first, and that for the others' processes.
void NcclBackend::begin_together() {
  (void)exchange_.all_gather("");
  const cudaStream_t first = streams_.front().get();
  calls_.meet(first);
  check_cuda(cudaEventRecord(begin_.get(), first));
  for (const cuda::Stream& stream : streams_) {
    check_cuda(cudaStreamWaitEvent(stream.get(), begin_.get(), 0));
  }
}

void NcclBackend::launch(std::size_t index) {
  const Task& task = program_->tasks[index];
  const cudaStream_t stream = streams_[task.stream].get();
  for (const TaskId before : program_->after(task)) {
    if (program_->tasks[at(before)].stream == task.stream) continue;  // in its order
    check_cuda(cudaStreamWaitEvent(stream, timed_[at(before)].end.get(), 0));
  }
  check_cuda(cudaEventRecord(timed_[index].start.get(), stream));
  switch (task.kind) {
    case TaskKind::kernel:
      work_.launch(plan_->kernels[at(task.work)], task.stream);
      break;
    case TaskKind::collective:
      calls_.launch_collective(at(task.work), stream);
      break;
    case TaskKind::transfer:
      calls_.launch_transfer(at(task.work), stream);
      break;
    case TaskKind::to_host:
    case TaskKind::from_host:
      work_.copy(task.kind, plan_->kernels[at(task.work)].bytes, task.stream);
      break;
  }
  check_cuda(cudaEventRecord(timed_[index].end.get(), stream));
}

// Task by task, so that what does not end can be named; others that are gone are noticed.
void NcclBackend::wait_for_all() {
  constexpr std::chrono::microseconds nap(50);
  for (std::size_t i = 0; i < timed_.size(); ++i) {
    watchdog_.tell(names_[i]);
    for (;;) {
      const cudaError_t state = cudaEventQuery(timed_[i].end.get());
      if (state == cudaSuccess) break;
      if (state != cudaErrorNotReady) check_cuda(state);
      calls_.check();
      exchange_.check();
      std::this_thread::sleep_for(nap);
    }
  }
}

Seconds NcclBackend::since_begin(const cuda::Event& event) const {
  constexpr double millisecond = 1e-3;
  float elapsed = 0;
  check_cuda(cudaEventElapsedTime(&elapsed, begin_.get(), event.get()));
  return Seconds(static_cast<double>(elapsed) * millisecond);
}

std::vector<TaskSpan> NcclBackend::run_step() {
  watchdog_.tell("the beginning of a step");
  begin_together();
  for (std::size_t i = 0; i < timed_.size(); ++i) {
    watchdog_.tell("the launch of " + names_[i]);
    launch(i);
  }
  wait_for_all();
  watchdog_.rest();
  std::vector<TaskSpan> spans;
  for (const Timed& timed : timed_) {
    spans.push_back({since_begin(timed.start), since_begin(timed.end)});
  }
  return spans;
}

// By its place on the bus: processes may see it under other numbers.
std::unique_ptr<DeviceMemory> NcclBackend::memory() {
  return std::make_unique<CudaMemory>(
      device_,
      fmt::format("{}, GPU {:x}:{:x}", host(), properties_.pciDomainID, properties_.pciBusID));
}

}  // namespace

int gpus_of_process() {
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code == cudaErrorNoDevice) return 0;
  if (code == cudaErrorInsufficientDriver) {
    throw CannotRunError(fmt::format("CUDA {} finds no driver, or one that is too old for it",
                                     cuda_version(CUDART_VERSION)));
  }
  check_cuda(code);
  return count;
}

std::unique_ptr<Backend> make_nccl_backend(Exchange& exchange, Watchdog& watchdog, int device) {
  return std::make_unique<NcclBackend>(exchange, watchdog, device);
}

}  // namespace shardsim
