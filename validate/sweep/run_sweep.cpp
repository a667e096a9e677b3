#include "validate/sweep/run_sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <fstream>
#include <memory>
#include <optional>
#include <thread>

#include "base/error.hpp"
#include "base/text.hpp"
#include "validate/step/validate_step.hpp"

namespace shardsim {
namespace {

constexpr int instances = 4;  // of a collective or kernel in a plan

constexpr std::int64_t least_moved = 16 * KiB;

Kernel matmul(const Product& product, DType dtype) {
  const auto& [batch, m, n, k, aligned] = product;
  return {"einsum",
          KernelClass::matmul,
          dtype,
          Flops(2 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k)),
          storage_bytes(m * k + k * n, dtype) + storage_bytes(m * n, type_of_product(dtype)),
          product};
}

bool has_kernels(const SweepOptions& options) { return options.part != SweepPart::collectives; }

// Of products: cubes, and such that are eight times as long in one direction, or an eighth; and of
// what is moved.
std::vector<Kernel> kernels_of(const SweepOptions& options, const WorkRange& range) {
  std::vector<Kernel> kernels;
  if (!has_kernels(options)) return kernels;
  for (const DType dtype : range.products) {
    for (std::int64_t side = range.smallest_side; side <= range.largest_side; side *= 2) {
      const std::int64_t longer = 8 * side;
      const std::int64_t shorter = std::max(side / 8, std::int64_t{8});
      for (const Product& product :
           {Product{1, side, side, side}, Product{1, side, side, longer},
            Product{1, side, side, shorter}, Product{1, longer, side, side},
            Product{1, shorter, side, side}}) {
        kernels.push_back(matmul(product, dtype));
      }
    }
  }
  for (std::int64_t bytes = least_moved; bytes <= range.most_moved.count(); bytes *= 4) {
    kernels.push_back({"copy", KernelClass::memory, DType::f32, Flops(0), Bytes(bytes)});
  }
  return kernels;
}

// With no times yet.
std::vector<SweptCopy> copies_of(const SweepOptions& options, const WorkRange& range) {
  std::vector<SweptCopy> copies;
  if (!has_kernels(options) || !range.copies) return copies;
  for (std::int64_t bytes = least_moved; bytes <= range.most_moved.count(); bytes *= 4) {
    for (const TaskKind direction : {TaskKind::to_host, TaskKind::from_host}) {
      copies.push_back({direction, Bytes(bytes), {}});
    }
  }
  return copies;
}

// All that is measured of collectives, with no times yet.
std::vector<SweptCollective> collectives_of(const SweepOptions& options, std::int64_t processes) {
  std::vector<SweptCollective> all;
  if (options.part == SweepPart::kernels) return all;
  const auto add = [&](CollectiveKind kind, const std::string& algorithm) {
    for (const std::int64_t size : group_sizes(processes)) {
      const std::int64_t most = processes / size;
      const bool alone_too = most > 1 && algorithm.empty();
      for (const std::int64_t groups :
           alone_too ? std::vector{most, std::int64_t{1}} : std::vector{most}) {
        for (const Bytes payload : options.sizes) {
          all.push_back({kind, size, groups, payload, {}, algorithm});
        }
      }
    }
  };
  for (const CollectiveKind kind : options.kinds) add(kind, "");
  for (const auto& [kind, algorithm] : options.algorithms) add(kind, algorithm);
  return all;
}

// What a process moves before a collective: more than its share of the caches.
constexpr Bytes moved_between{64 * MiB};

// `instances` tasks of that kind; before each collective the plan's kernel.
void add_program(Plan& plan, TaskKind kind) {
  plan.names = {"swept", "between"};
  Program program;
  program.name = "all";
  program.streams = {"compute"};
  for (int i = 0; i < instances; ++i) {
    if (kind == TaskKind::collective) {
      Task between;
      between.name = 1;
      (void)program.add_task(between, {});
    }
    Task task;
    task.kind = kind;
    (void)program.add_task(task, {});
  }
  plan.programs.push_back(std::move(program));
  verify(plan);
}

// The first groups of neighbours; all where they are all.
Plan plan_of(const SweptCollective& swept, std::int64_t processes) {
  Plan plan;
  plan.mesh = Mesh({{"groups", processes / swept.group_size}, {"group", swept.group_size}});
  Collective collective;
  collective.kind = swept.kind;
  collective.dtype = DType::f32;
  collective.payload = swept.payload;
  const std::vector<std::vector<std::int64_t>> groups = plan.mesh.groups({plan.mesh.whole(1)});
  if (static_cast<std::int64_t>(groups.size()) == swept.groups) {
    collective.axes = {plan.mesh.whole(1)};
  } else {
    collective.groups.assign(groups.begin(), groups.begin() + swept.groups);
  }
  plan.collectives.push_back(std::move(collective));
  plan.kernels.push_back({"copy", KernelClass::memory, DType::f32, Flops(0), moved_between});
  add_program(plan, TaskKind::collective);
  return plan;
}

// A kernel, or what is copied as a kernel's bytes are.
Plan plan_of(const Kernel& kernel, TaskKind kind, std::int64_t processes) {
  Plan plan;
  plan.mesh = Mesh({{"all", processes}});
  plan.kernels.push_back(kernel);
  add_program(plan, kind);
  return plan;
}

MeasuredTime time_of(const Plan& plan, Backend& backend, const Repeats& repeats) {
  const MeasuredStep measured = execute(plan, backend, repeats);
  std::vector<double> medians;
  std::vector<double> lows;
  std::vector<double> highs;
  for (std::size_t i = 0; i < plan.programs.front().tasks.size(); ++i) {
    if (plan.programs.front().tasks[i].name != 0) continue;  // between
    const Spread& spread = measured.tasks.front()[i];
    medians.push_back(spread.median.count());
    lows.push_back(spread.low.count());
    highs.push_back(spread.high.count());
  }
  const auto middle = [](std::vector<double> values) {
    return Seconds(quantile(std::move(values), 0.5));
  };
  return {middle(medians), middle(lows), middle(highs), measured.repeats};
}

std::string today() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm utc{};
  gmtime_r(&now, &utc);
  return fmt::format("{:04}-{:02}-{:02}", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday);
}

// As Linux names it; where it does not, "unknown".
std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

// Of every rank the place of its host among them.
std::vector<std::int64_t> hosts_of_ranks(Backend& backend, const std::vector<std::string>& hosts) {
  std::vector<std::int64_t> places;
  for (const std::string& host : backend.exchange().all_gather(backend.host())) {
    places.push_back(std::find(hosts.begin(), hosts.end(), host) - hosts.begin());
  }
  return places;
}

std::string describe(const SweptCollective& swept) {
  return fmt::format("{} of {} over {}{}{}", name_of(swept.kind), format_bytes(swept.payload),
                     swept.group_size, swept.algorithm.empty() ? "" : ", ", swept.algorithm);
}

std::string describe(const Kernel& kernel) {
  if (!kernel.product) return fmt::format("{} of {}", kernel.op, format_bytes(kernel.bytes));
  return fmt::format("{} {} x {} x {}", name_of(kernel.dtype), kernel.product->m, kernel.product->n,
                     kernel.product->k);
}

// What buffers as a step has them, ten of each size, take of the device beyond what they ask for.
// Nothing where memory is not measured, or short.
std::optional<MemoryTaken> allocator_overhead(Backend& backend) {
  constexpr std::array<std::int64_t, 5> sizes = {1'000, 10'000, 100'000, 1'000'000, 10'000'000};
  constexpr int of_each = 10;
  const std::unique_ptr<DeviceMemory> memory = backend.memory();
  if (!memory) return std::nullopt;
  Bytes asked{0};
  BufferId buffer = 0;
  try {
    for (const std::int64_t size : sizes) {
      for (int i = 0; i < of_each; ++i) {
        memory->allocate(buffer++, Bytes(size));
        asked += Bytes(size);
      }
    }
  } catch (const CannotRunError&) {
    return std::nullopt;
  }
  return MemoryTaken{
      fmt::format("the allocator, beyond {} buffers of {}", buffer, format_bytes(asked)),
      memory->reserved() - asked};
}

}  // namespace

std::vector<std::int64_t> group_sizes(std::int64_t processes) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = 2; size <= processes; ++size) {
    if (processes % size == 0) sizes.push_back(size);
  }
  return sizes;
}

SweepOptions default_sweep() {
  SweepOptions options;
  options.kinds = {CollectiveKind::all_reduce,     CollectiveKind::all_gather,
                   CollectiveKind::reduce_scatter, CollectiveKind::all_to_all,
                   CollectiveKind::broadcast,      CollectiveKind::collective_permute};
  for (std::int64_t size = KiB; size <= 16 * MiB; size *= 4) options.sizes.emplace_back(size);
  return options;
}

std::size_t parts_of(const SweepOptions& options, const Backend& backend) {
  const WorkRange range = backend.range();
  return collectives_of(options, backend.exchange().size()).size() +
         kernels_of(options, range).size() + copies_of(options, range).size();
}

DeviceSweep run_sweep(const SweepOptions& options, Backend& backend,
                      const std::function<void(const std::string&)>& begins) {
  const std::int64_t processes = backend.exchange().size();
  const auto begin = [&](const std::string& part) {
    if (begins) begins(part);
  };
  DeviceSweep sweep;
  sweep.date = today();
  sweep.profile = options.machine.value_or(backend.profile());
  sweep.on = run_on(backend);
  sweep.host_of_rank = hosts_of_ranks(backend, sweep.on.hosts);
  sweep.processor = processor_name();
  sweep.cores = std::thread::hardware_concurrency();
  sweep.device = backend.device();
  for (SweptCollective& swept : collectives_of(options, processes)) {
    begin(describe(swept));
    backend.choose_algorithm(swept.kind, swept.algorithm);
    swept.time = time_of(plan_of(swept, processes), backend, options.repeats);
    sweep.collectives.push_back(std::move(swept));
  }
  for (const auto& [kind, algorithm] : options.algorithms) backend.choose_algorithm(kind, "");
  const auto time_alone = [&](const Kernel& kernel, TaskKind kind) {
    return time_of(plan_of(kernel, kind, processes), backend, options.repeats);
  };
  for (const Kernel& kernel : kernels_of(options, backend.range())) {
    begin(describe(kernel));
    sweep.kernels.push_back({kernel, time_alone(kernel, TaskKind::kernel)});
  }
  for (SweptCopy& swept : copies_of(options, backend.range())) {
    begin(fmt::format("copy {}, {}", name_of(swept.direction), format_bytes(swept.bytes)));
    const Kernel copied{"copy", KernelClass::memory, DType::f32, Flops(0), swept.bytes};
    swept.time = time_alone(copied, swept.direction);
    sweep.copies.push_back(swept);
  }
  if (!has_kernels(options)) return sweep;
  sweep.memory = backend.memory_taken();
  if (const auto taken = allocator_overhead(backend)) sweep.memory.push_back(*taken);
  return sweep;
}

}  // namespace shardsim
