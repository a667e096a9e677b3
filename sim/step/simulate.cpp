#include "sim/step/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <map>
#include <set>
#include <stdexcept>

#include "base/for_each_index.hpp"
#include "base/text.hpp"
#include "sim/step/accounting.hpp"
#include "sim/step/kernel_cost.hpp"
#include "sim/step/link_usage.hpp"
#include "sim/step/lowering.hpp"
#include "sim/step/memory.hpp"
#include "sim/step/outside_memory.hpp"
#include "sim/step/reserved_memory.hpp"

namespace shardsim {
namespace {

const Program& program_of(const Plan& plan, const Lowered& lowered, std::int32_t task) {
  return plan.programs[static_cast<std::size_t>(
      lowered.graph.tasks[static_cast<std::size_t>(task)].program)];
}

[[noreturn]] void report_deadlock(const Plan& plan, const Lowered& lowered, std::int32_t stuck) {
  const Program& program = program_of(plan, lowered, stuck);
  const auto p = static_cast<std::size_t>(&program - plan.programs.data());
  const auto local = static_cast<std::size_t>(stuck - lowered.first_task[p]);
  throw std::logic_error(fmt::format("plan: deadlock: task {} ({}) of program {} never runs", local,
                                     plan.task_name(program.tasks[local]), program.name));
}

std::vector<ProgramResult> program_results(const Plan& plan, const Lowered& lowered,
                                           const Trace& trace) {
  std::vector<ProgramResult> results;
  for (std::size_t p = 0; p < plan.programs.size(); ++p) {
    const Program& program = plan.programs[p];
    ProgramResult result;
    result.name = program.name;
    result.devices = program.devices.empty() ? plan.mesh.devices()
                                             : static_cast<std::int64_t>(program.devices.size());
    result.tasks.reserve(program.tasks.size());
    for (std::size_t i = 0; i < program.tasks.size(); ++i) {
      const std::size_t id = static_cast<std::size_t>(lowered.first_task[p]) + i;
      result.tasks.push_back({trace.start[id], trace.end[id]});
    }
    results.push_back(std::move(result));
  }
  return results;
}

// Operations of the matmuls and attention that the plan executes, by type, on all devices.
std::map<DType, double> matmul_flops(const Plan& plan, const Result& result) {
  std::map<DType, double> flops;
  for (std::size_t p = 0; p < plan.programs.size(); ++p) {
    for (const Task& task : plan.programs[p].tasks) {
      if (task.kind != TaskKind::kernel) continue;
      const Kernel& kernel = plan.kernels[static_cast<std::size_t>(task.work)];
      if (kernel.kernel_class == KernelClass::memory) continue;
      flops[kernel.dtype] += kernel.flops.count() * static_cast<double>(result.programs[p].devices);
    }
  }
  return flops;
}

void rate(const Plan& plan, const DeviceProfile& device, Result& result) {
  const double device_seconds =
      to_seconds(result.step_time).count() * static_cast<double>(plan.mesh.devices());
  if (device_seconds <= 0) return;
  result.tokens_per_second_per_device =
      static_cast<double>(plan.subject.tokens_per_step) / device_seconds;
  const std::map<DType, double> flops = matmul_flops(plan, result);
  if (flops.empty()) return;
  const auto main = std::max_element(
      flops.begin(), flops.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  const double main_peak = operand_peak(device, main->first).rate.count();
  double executed = 0;
  double at_peak = 0;  // seconds that the operations would take one device
  for (const auto& [dtype, count] : flops) {
    executed += count;
    at_peak += count / std::max(main_peak, operand_peak(device, dtype).rate.count());
  }
  if (executed <= 0) return;
  const double possible = executed / at_peak * device_seconds;
  result.mfu = plan.subject.model_flops.count() / possible;
  const double full = plan.subject.model_flops_full_attention.count() / possible;
  if (full <= 1) {
    result.mfu_full_attention = full;
  } else {
    result.notes.push_back(
        fmt::format("MFU with full attention is left out: with the part that the causal mask "
                    "spares, the devices would have done {:.0f} % of what they can",
                    100 * full));
  }
}

std::vector<std::string> notes_of(const Plan& plan, const Lowered& lowered,
                                  const DeviceProfile& device) {
  std::vector<std::string> notes;
  for (std::size_t i = 0; i < plan.collectives.size(); ++i) {
    const std::string caveat = caveat_of(plan.collectives[i].kind, lowered.collectives[i]);
    const bool is_new = std::find(notes.begin(), notes.end(), caveat) == notes.end();
    if (!caveat.empty() && is_new) notes.push_back(caveat);
  }
  notes.insert(notes.end(), lowered.notes.begin(), lowered.notes.end());
  std::set<std::string> untabled;  // generations of attention
  for (const Kernel& kernel : plan.kernels) {
    const bool is_attention = kernel.kernel_class == KernelClass::attention ||
                              kernel.kernel_class == KernelClass::attention_backward;
    const std::string& generation = kernel.implementation;
    if (!is_attention || generation.empty() || generation == "unfused") continue;
    if (!device.kernels || !device.kernels->attention.contains(generation)) {
      untabled.insert(generation);
    }
  }
  for (const std::string& generation : untabled) {
    notes.push_back(
        fmt::format("nothing is known of {} attention on {}: it runs at the profile's "
                    "own efficiency of attention",
                    generation, device.name));
  }
  std::set<std::pair<DType, DType>> substituted;
  for (const Kernel& kernel : plan.kernels) {
    if (kernel.kernel_class == KernelClass::memory || kernel.flops.count() <= 0) continue;
    const DType used = operand_peak(device, kernel.dtype).dtype;
    if (used != kernel.dtype) substituted.emplace(kernel.dtype, used);
  }
  for (const auto& [wanted, used] : substituted) {
    notes.push_back(fmt::format("{} has no {} peak: {} matmuls run at its {} peak", device.name,
                                name_of(wanted), name_of(wanted), name_of(used)));
  }
  return notes;
}

// Who issues the tasks or, of a step without gradients, of which that is not said, whose kernels
// they are.
std::string_view stack_of(const Plan& plan) {
  if (!plan.issued_by.empty()) return plan.issued_by;
  const auto found = std::find_if(plan.kernels.begin(), plan.kernels.end(), [](const Kernel& k) {
    return k.kernel_class == KernelClass::memory && !k.implementation.empty();
  });
  return found == plan.kernels.end() ? std::string_view() : found->implementation;
}

Bytes workspaces_of(const Plan& plan, const DeviceProfile& device) {
  const auto found = device.workspaces.find(std::string(stack_of(plan)));
  return found == device.workspaces.end() ? Bytes(0) : found->second.value;
}

// What a stack of PyTorch's holds beside its buffers.
void count_beside(const Plan& plan, const Program& program,
                  const std::vector<BufferLifetime>& lifetimes, const Lowered& lowered,
                  const Machine& machine, ProgramResult& result) {
  result.allocated = result.reserved = result.peak;
  const std::string_view stack = stack_of(plan);
  if (stack.empty() || stack == "xla") return;
  const ReservedMemory counted =
      reserve_memory(program, lifetimes, workspaces_of(plan, machine.profile.device));
  result.allocated = counted.allocated;
  result.reserved = counted.reserved;
  result.outside = outside_memory(plan, program, lowered, machine);
}

void count_on_host(const Machine& machine, Result& result) {
  Bytes most{0};
  for (const ProgramResult& program : result.programs) most = std::max(most, program.on_host);
  const auto* cluster = std::get_if<ClusterProfile>(&machine.profile.network);
  const std::int64_t together = cluster == nullptr ? 1 : devices_per_host(*cluster);
  result.on_a_host = std::min(together, machine.devices) * most;
  const std::optional<HostMemoryProfile>& memory = machine.profile.device.host_memory;
  if (memory && memory->capacity) result.host_capacity = memory->capacity->value;
}

// Where tasks are issued until the step is nearly over, devices wait for their host.
void note_host(const Plan& plan, const Lowered& lowered, const DeviceProfile& device,
               Result& result) {
  const std::vector<SimTime>& issued = lowered.graph.not_before;
  if (issued.empty() || !lowered.graph.issued_behind.empty()) return;
  const Seconds last = to_seconds(*std::max_element(issued.begin(), issued.end()));
  constexpr double nearly = 0.9;
  if (last.count() < nearly * to_seconds(result.step_time).count()) return;
  result.notes.push_back(
      fmt::format("the host bounds the step: issuing its tasks takes {}, {} a launch ({})",
                  format_seconds(last), format_seconds(device.host_launch.at(plan.issued_by).value),
                  plan.issued_by));
}

// What only the engine reads, and is large.
void forget_edges(TaskGraph& graph) {
  graph.waits = {};
  graph.first_successor = {};
  graph.successors = {};
}

}  // namespace

Bytes Result::peak() const {
  Bytes largest{0};
  for (const ProgramResult& program : programs) largest = std::max(largest, program.peak);
  return largest;
}

Bytes Result::process() const {
  Bytes largest{0};
  for (const ProgramResult& program : programs) largest = std::max(largest, program.process());
  return largest;
}

const ProgramResult& Result::critical() const {
  assert(!programs.empty());
  return *std::max_element(
      programs.begin(), programs.end(),
      [](const ProgramResult& a, const ProgramResult& b) { return a.peak < b.peak; });
}

Result simulate(const Plan& plan, const Machine& machine, const SimulationOptions& options) {
  const Placement placement(plan.mesh, machine, options.collectives, options.order);
  const bool keeps_links = options.link_bins > 0;
  Lowered lowered = lower(plan, placement, options.costs,
                          keeps_links ? FollowLinks::always : FollowLinks::where_messages_meet);
  const Trace trace = run(lowered.graph);
  if (trace.stuck >= 0) report_deadlock(plan, lowered, trace.stuck);
  forget_edges(lowered.graph);

  const DeviceProfile& device = machine.profile.device;
  Result result;
  result.capacity = device.memory_capacity.value;
  result.programs = program_results(plan, lowered, trace);
  // Time, and the memory of each program: they write to members of their own.
  for_each_index(1 + plan.programs.size(), [&](std::size_t job) {
    if (job == 0) {
      account(plan, lowered, trace, result);
      if (keeps_links) add_link_usage(lowered, trace, options.link_bins, result);
      return;
    }
    const Program& program = plan.programs[job - 1];
    ProgramResult& counted = result.programs[job - 1];
    const std::vector<BufferLifetime> lifetimes =
        replay_memory(plan, program, workspaces_of(plan, device), options.keep_timeline, counted);
    count_beside(plan, program, lifetimes, lowered, machine, counted);
  });
  std::vector<double> peaks;
  std::vector<std::int64_t> devices;
  for (const ProgramResult& program : result.programs) {
    peaks.push_back(static_cast<double>(program.peak.count()));
    devices.push_back(program.devices);
  }
  result.memory_balance = balance(peaks, devices);
  count_on_host(machine, result);
  result.notes = notes_of(plan, lowered, device);
  note_host(plan, lowered, device, result);
  rate(plan, device, result);
  return result;
}

}  // namespace shardsim
