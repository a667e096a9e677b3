// simulate(plan, machine, options) -> Result: a function, no state besides.
//
// Each device class runs its program: streams in issue order, tasks when their dependencies have
// ended (plan.hpp). Time is integer picoseconds; events are ordered by (time, named phase,
// sequence), so that the same input gives the same bytes out.
//
//   kernel      launch + max(flops / (peak * efficiency), bytes / (bandwidth * efficiency))
//   collective  launch + steps * latency + wire bytes / bandwidth of its links
//   (collective_cost.hpp)
//   host copy   latency + bytes / bandwidth of the link to the host (host_copy_cost.hpp)
//
// What runs at the same time shares links, memory bandwidth and cores (resources.hpp): each of it
// takes longer by as much as others leave it less than it could use.
//
// Cost: O((tasks + dependencies) log tasks) time, O(tasks + buffers) memory, whatever the size of
// the machine.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "hardware_profiles/machine.hpp"
#include "plan/plan.hpp"
#include "sim/collectives/collective_cost.hpp"
#include "sim/step/time_parts.hpp"

namespace shardsim {

struct SimulationOptions {
  bool keep_timeline = false;  // fill the memory curves with every change
  std::size_t link_bins = 0;   // of what is taken of links over time; 0: it is not kept
  CollectiveModel collectives = {};
  DeviceOrder order = {};  // of the plan's mesh
  CostOptions costs = {};
};

// When a task ran. One entry per task of every program, in program and issue order.
struct TaskTimes {
  SimTime start{0};
  SimTime end{0};
};

// How much of a level of links a device takes over time; of a network written in place or a graph,
// how much is taken of a link, and of those that carry as much.
struct LinkUsage {
  LinkLevel level = LinkLevel::scale_up;
  LinkDirection direction = LinkDirection::both;
  std::vector<double> taken = {};  // mean of every bin; of the bandwidth
  std::string link = {};           // "device 0 -> device 1"
  std::int64_t links = 1;          // with that one
};

struct MemorySample {
  SimTime time{0};
  std::array<Bytes, buffer_categories> by_category{};
};

// A buffer (all its layers together) alive at the peak.
struct PeakBuffer {
  std::string name;  // with "{}" for the layer
  BufferCategory category = BufferCategory::temporaries;
  std::int64_t count = 1;
  Bytes bytes{0};  // together
};

// Of kernels that run at the same time, on several streams, the one on the lowest stream counts. On
// the compute stream alone, then, compute_time is the sum of what kernels take alone: it depends on
// no link and no other stream.
struct ProgramResult {
  std::string name;
  std::int64_t devices = 1;
  SimTime compute_time{0};        // of the time with a kernel running, what it takes alone
  SimTime contention_time{0};     // the rest: others took memory bandwidth or cores meanwhile
  SimTime communication_time{0};  // time with at least one collective or transfer in flight
  SimTime exposed_time{0};        // of that, time with no kernel running
  SimTime idle_time{0};           // neither; step = compute + contention + exposed + idle
  TimeByPart parts{};             // the same by cause
  Bytes peak{0};
  SimTime peak_time{0};
  std::string peak_task;  // the kernel that ran at the peak, else the task that started then
  std::array<Bytes, buffer_categories> peak_by_category{};  // at the peak
  std::vector<PeakBuffer> peak_buffers;                     // largest first
  // What PyTorch's allocator has given out and reserved at the most (reserved_memory.hpp) and what
  // lies outside it (outside_memory.hpp); else, under other allocators, the peak, and nothing.
  Bytes allocated{0};
  Bytes reserved{0};
  Bytes outside{0};
  Bytes on_host{0};  // the most that a device keeps in the memory of its host
  std::vector<TaskTimes> tasks;
  std::vector<MemorySample> memory_curve;  // keep_timeline: every change; else empty
  std::vector<LinkUsage> links;            // link_bins: by level, or the busiest of a network

  // All that a process holds of the device's memory, as far as it is counted.
  [[nodiscard]] Bytes process() const { return std::max(peak, reserved) + outside; }
};

// The collectives of one kind over one set of axes, added up over the programs. Messages between
// programs are a row of kind collective-permute without axes, copies to hosts and back are rows of
// a kind of their own, of groups of one.
struct CommunicationRow {
  std::string kind;  // of a collective, else "to-host", "from-host"
  std::vector<std::string> axes;
  std::int64_t group_size = 1;
  std::int64_t count = 0;
  Bytes payload{0};                // sum over executions
  Bytes wire_bytes_per_device{0};  // sum over executions
  SimTime time{0};                 // sum over executions
  SimTime exposed{0};              // part of it during which no kernel ran, shared evenly among
                                   // the collectives then in flight
  std::string what;                // the reason that moves most bytes, and how many more
  // What they went by, the one that took longest first: "NVLS Simple", "ring on y". Empty for
  // messages between programs.
  std::vector<std::string> algorithms = {};
};

struct Result {
  SimTime step_time{0};
  Bytes capacity{0};
  // What the devices of one host keep in its memory, each as much as the one that keeps most, and
  // how much there is; none: not known.
  Bytes on_a_host{0};
  std::optional<Bytes> host_capacity = {};
  std::vector<ProgramResult> programs;
  std::vector<CommunicationRow> communication;  // ordered by exposed, then time, descending
  // mean over maximum across devices; 1 is perfect
  double memory_balance = 1;
  double compute_balance = 1;
  double link_balance = 1;
  double tokens_per_second_per_device = 0;  // 0 where tokens have no meaning
  // Model flops over (peak of all devices * step time), at most 1. The peak is that of the operand
  // type with most matmul operations in the plan; operations of faster types count with their own.
  double mfu = 0;                  // of what a causal mask leaves of attention
  double mfu_full_attention = 0;   // of all of it; 0, with a note, where that would be above 1
  std::vector<std::string> notes;  // approximations of this simulation

  [[nodiscard]] Bytes peak() const;     // largest over programs
  [[nodiscard]] Bytes process() const;  // likewise; what has to fit
  [[nodiscard]] bool fits_on_host() const { return !host_capacity || on_a_host <= *host_capacity; }
  [[nodiscard]] bool fits() const { return process() <= capacity && fits_on_host(); }
  [[nodiscard]] const ProgramResult& critical() const;  // the program with the largest peak
};

// The plan has passed verify(). Throws InputError when machine and plan do not match in devices and
// for what is not simulated (lowering.hpp). Throws std::logic_error when messages, or collectives
// of several programs, have no partner or programs wait for each other for ever.
[[nodiscard]] Result simulate(const Plan& plan, const Machine& machine,
                              const SimulationOptions& options);

}  // namespace shardsim
