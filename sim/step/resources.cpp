#include "sim/step/resources.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "sim/step/host_copy_cost.hpp"
#include "sim/step/kernel_cost.hpp"
#include "sim/step/sustained_clock.hpp"

namespace shardsim {
namespace {

// Of the devices of a program: both directions of every level, then these.
constexpr std::size_t memory = 2 * link_levels;
constexpr std::size_t cores = memory + 1;
constexpr std::size_t cores_of_products = cores + 1;
constexpr std::size_t per_program = cores_of_products + 1;

double ratio(Seconds part, Seconds whole) {
  return whole > Seconds(0) ? part.count() / whole.count() : 0;
}

ResourceId of_program(std::size_t program, std::size_t resource) {
  return static_cast<ResourceId>(program * per_program + resource);
}

ResourceId link_of(std::size_t program, LinkLevel level, LinkDirection direction) {
  return of_program(program,
                    2 * static_cast<std::size_t>(level) + static_cast<std::size_t>(direction));
}

void use(ResourceId resource, double share, Work& work) {
  const std::int32_t part = part_of(share);
  if (part > 0) work.uses.push_back({resource, part});
}

// Levels whose directions are those of a dimension, alike for both ends of a message.
bool is_dimension(LinkLevel level) {
  return level != LinkLevel::scale_up && level != LinkLevel::scale_out && level != LinkLevel::dcn &&
         level != LinkLevel::host;
}

// Who uses or holds a resource, by how much.
struct Load {
  std::int32_t work = 0;
  std::int32_t part = 0;
  bool holds = false;
  friend auto operator<=>(const Load&, const Load&) = default;
};

// Resources that every work uses alike become one: both directions of a level where all are
// collectives, links of a network that everything loads alike. How many are left.
std::size_t join_alike(std::vector<Work>& works) {
  std::map<ResourceId, std::vector<Load>> loads;
  for (std::size_t id = 0; id < works.size(); ++id) {
    const auto work = static_cast<std::int32_t>(id);
    for (const Use& each : works[id].uses) loads[each.resource].push_back({work, each.part});
    for (const Use& each : works[id].holds) loads[each.resource].push_back({work, each.part, true});
  }
  std::map<std::vector<Load>, ResourceId> classes;
  std::map<ResourceId, ResourceId> joined;
  for (auto& [resource, by] : loads) {
    const auto next = static_cast<ResourceId>(classes.size());
    joined[resource] = classes.try_emplace(std::move(by), next).first->second;
  }
  for (Work& work : works) {
    for (Uses* uses : {&work.uses, &work.holds}) {
      for (Use& each : *uses) each.resource = joined.at(each.resource);
      std::sort(uses->begin(), uses->end());
      uses->erase(std::unique(uses->begin(), uses->end()), uses->end());
    }
  }
  return classes.size();
}

bool several_streams_communicate(const Plan& plan) {
  std::set<std::pair<std::size_t, std::uint8_t>> streams;
  for (std::size_t p = 0; p < plan.programs.size(); ++p) {
    for (const Task& task : plan.programs[p].tasks) {
      if (task.kind == TaskKind::kernel || is_host_copy(task.kind)) continue;
      streams.emplace(p, task.stream);
    }
  }
  return streams.size() > 1;
}

}  // namespace

void check_length(const Machine& machine, const char* what, Seconds length) {
  if (length <= to_seconds(longest_step)) return;
  throw InputError({"", "machine " + machine.profile.name},
                   fmt::format("{} {:.3g} s, and steps are simulated up to {:.3g} s", what,
                               length.count(), to_seconds(longest_step).count()));
}

Resources::Resources(const Plan& plan, const Placement& placement, CollectiveCosts& costs,
                     FollowLinks follow)
    : plan_(plan),
      placement_(placement),
      costs_(costs),
      follow_(follow),
      messages_meet_(several_streams_communicate(plan)) {
  const DeviceProfile& device = placement.machine().profile.device;
  for (const Program& program : plan.programs) {
    clocks_.push_back(sustained_clock(device, plan, program));
  }
  const double slowest = clocks_.empty() ? 1 : *std::min_element(clocks_.begin(), clocks_.end());
  constexpr double noted = 0.995;
  if (slowest < noted) {
    const Power limit = device.power_limit ? device.power_limit->value : device.power->limit.value;
    note(fmt::format("at {:.0f} W {} sustains {:.0f} % of the clock of short runs in this step",
                     limit.count(), device.name, 100 * slowest));
  }
}

std::int32_t Resources::add(Work work) {
  works_.push_back(std::move(work));
  return static_cast<std::int32_t>(works_.size()) - 1;
}

void Resources::note(const std::string& text) {
  if (std::find(notes_.begin(), notes_.end(), text) == notes_.end()) notes_.push_back(text);
}

// `fixed` of the total; both are rounded up once.
Work Resources::work_of(Seconds fixed, Seconds total) const {
  check_length(placement_.machine(), "a task takes", total);
  const SimTime first = round_up(fixed);
  return {first, std::max(SimTime(0), round_up(total) - first)};
}

Work Resources::work_of(const CostBreakdown& cost) const {
  return work_of(cost.launch + cost.latency, cost.total());
}

std::int32_t Resources::add_kernel(std::size_t program, const Kernel& kernel) {
  if (kernel.kernel_class == KernelClass::host) {
    const Machine& machine = placement_.machine();
    const Seconds time = host_work_cost(machine.profile, machine.devices, kernel.bytes);
    return add(work_of(time, time));
  }
  const KernelCost cost =
      at_clock(kernel_cost(placement_.machine().profile.device, kernel), clocks_[program]);
  Work work = work_of(cost.launch, cost.total());
  use(of_program(program, memory), ratio(cost.moving, cost.longest()), work);
  const double computing = ratio(cost.computing, cost.longest());
  use(of_program(program, cores), computing, work);
  if (kernel.kernel_class == KernelClass::matmul) {
    use(of_program(program, cores_of_products), computing, work);
  }
  return add(std::move(work));
}

std::int32_t Resources::add_host_copy(std::size_t program, TaskKind kind, Bytes bytes) {
  const Machine& machine = placement_.machine();
  const HostCopyCost cost = host_copy_cost(machine.profile, machine.devices, bytes);
  const std::optional<Sourced<bool>>& duplex = machine.profile.device.host_link->full_duplex;
  const bool is_shared = duplex && !duplex->value;
  Work work = work_of(cost.latency, cost.latency + cost.transfer);
  if (is_shared || kind == TaskKind::to_host) {
    use(link_of(program, LinkLevel::host, LinkDirection::out), 1, work);
  }
  if (is_shared || kind == TaskKind::from_host) {
    use(link_of(program, LinkLevel::host, LinkDirection::in), 1, work);
  }
  use(of_program(program, memory), memory_share(static_cast<double>(bytes.count()), cost.transfer),
      work);
  return add(std::move(work));
}

ResourceId Resources::first_link() const {
  return of_program(plan_.programs.size(), /*resource=*/0);
}

double Resources::memory_share(double bytes, Seconds time) const {
  const DeviceProfile& device = placement_.machine().profile.device;
  const double rate = device.memory_bandwidth.value.count() * device.memory_efficiency.value;
  return rate > 0 ? ratio(Seconds(bytes / rate), time) : 0;
}

void Resources::hold_cores(std::size_t program, const CostBreakdown& cost, Work& work) {
  if (cost.thread_blocks == 0) return;
  const DeviceProfile& device = placement_.machine().profile.device;
  if (!device.sms) {
    note(fmt::format("how many multiprocessors {} has is not known: collectives take none",
                     device.name));
    return;
  }
  const double share =
      static_cast<double>(cost.thread_blocks) / static_cast<double>(device.sms->value);
  const double of_products = device.sms_per_block ? device.sms_per_block->value : 1;
  work.holds.push_back({of_program(program, cores), part_of(share)});
  work.holds.push_back({of_program(program, cores_of_products), part_of(of_products * share)});
}

std::int32_t Resources::add_collective(const std::vector<std::size_t>& programs,
                                       const Collective& collective, const CostBreakdown& cost) {
  Work work = work_of(cost);
  std::vector<std::int64_t> devices;
  for (const std::size_t program : programs) {
    hold_cores(program, cost, work);
    const std::vector<std::int64_t>& more = plan_.programs[program].devices;
    devices.insert(devices.end(), more.begin(), more.end());
  }
  if (placement_.network() != nullptr) {
    return add_on_links(std::move(work), collective, cost, devices,
                        {programs.begin(), programs.end()});
  }
  for (const std::size_t program : programs) {
    for (const LinkUse& link : cost.links) {
      use(link_of(program, link.level, LinkDirection::out), link.out, work);
      use(link_of(program, link.level, LinkDirection::in), link.in, work);
    }
    use(of_program(program, memory), memory_share(cost.memory.total(), cost.transfer), work);
  }
  return add(std::move(work));
}

std::int32_t Resources::add_message(std::size_t from, std::size_t to, const Collective& permute,
                                    const CostBreakdown& cost) {
  Work work = work_of(cost);
  hold_cores(from, cost, work);
  hold_cores(to, cost, work);
  if (placement_.network() != nullptr) {
    return add_on_links(std::move(work), permute, cost, {},
                        {static_cast<std::int32_t>(from), static_cast<std::int32_t>(to)});
  }
  for (const LinkUse& link : cost.links) {
    use(link_of(from, link.level, LinkDirection::out), link.out, work);
    use(link_of(to, link.level, LinkDirection::in), link.in, work);
    if (!is_dimension(link.level)) continue;
    use(link_of(from, link.level, LinkDirection::in), link.in, work);
    use(link_of(to, link.level, LinkDirection::out), link.out, work);
  }
  use(of_program(from, memory), memory_share(cost.memory.out, cost.transfer), work);
  use(of_program(to, memory), memory_share(cost.memory.in, cost.transfer), work);
  return add(std::move(work));
}

std::int32_t Resources::add_on_links(Work work, const Collective& collective,
                                     const CostBreakdown& cost,
                                     const std::vector<std::int64_t>& devices,
                                     std::vector<std::int32_t> programs) {
  const std::int32_t id = add(std::move(work));
  const bool follows = messages_meet_ || follow_ == FollowLinks::always;
  if (cost.links.empty() || !follows) return id;
  OnLinks& on = on_links_.emplace_back(OnLinks{id, std::move(programs), {}});
  if (!links_known_) return id;
  const auto times = costs_.link_times(collective, devices);
  links_known_ = times.has_value();
  if (!times) return id;
  for (const Seconds time : *times) on.parts.push_back(part_of(ratio(time, cost.transfer)));
  if (!messages_meet_) return id;
  for (std::size_t link = 0; link < on.parts.size(); ++link) {
    if (on.parts[link] == 0) continue;
    works_[at(id)].uses.push_back({first_link() + static_cast<ResourceId>(link), on.parts[link]});
  }
  return id;
}

LinkUses Resources::link_uses() const {
  LinkUses result;
  result.by_work.resize(works_.size());
  for (std::size_t work = 0; work < works_.size(); ++work) {
    for (const Use& use : works_[work].uses) {
      if (use.resource >= first_link()) continue;
      const std::size_t number = at(use.resource) % per_program;
      if (number >= memory) continue;
      result.by_work[work].push_back({static_cast<std::int32_t>(at(use.resource) / per_program),
                                      static_cast<LinkLevel>(number / 2),
                                      static_cast<LinkDirection>(number % 2),
                                      static_cast<double>(use.part) / all_of_it});
    }
  }
  if (links_known_ && !on_links_.empty()) add_uses_of_links(result);
  return result;
}

// Links are alike of which every work takes the same part. Where they are more than anybody follows
// over time there is nothing.
void Resources::add_uses_of_links(LinkUses& uses) const {
  constexpr std::size_t most_classes = 4096;
  const MachineGraph& machine = costs_.graph();
  const std::span<const NetworkLink> links = machine.graph.links();
  std::map<std::vector<std::int32_t>, std::int32_t> classes;
  std::vector<std::int32_t> parts(on_links_.size());
  for (std::size_t link = 0; link < links.size(); ++link) {
    std::transform(on_links_.begin(), on_links_.end(), parts.begin(),
                   [&](const OnLinks& on) { return on.parts[link]; });
    if (std::all_of(parts.begin(), parts.end(), [](std::int32_t part) { return part == 0; })) {
      continue;
    }
    const auto next = static_cast<std::int32_t>(uses.alike.size());
    const auto [found, is_new] = classes.try_emplace(parts, next);
    if (!is_new) {
      ++uses.alike[at(found->second)].links;
      continue;
    }
    if (classes.size() > most_classes) {
      uses.alike.clear();
      return;
    }
    uses.alike.push_back(
        {fmt::format("{} -> {}", machine.name(links[link].from), machine.name(links[link].to))});
  }
  for (const auto& [of_works, number] : classes) {
    for (std::size_t i = 0; i < of_works.size(); ++i) {
      if (of_works[i] == 0) continue;
      for (const std::int32_t program : on_links_[i].programs) {
        uses.by_work[at(on_links_[i].work)].push_back(
            {program, LinkLevel::network, LinkDirection::out,
             static_cast<double>(of_works[i]) / all_of_it, number});
      }
    }
  }
}

void Resources::finish(TaskGraph& graph) {
  if (!links_known_ && messages_meet_) {
    note(
        "the network's links are too many to follow one by one: collectives at the same time "
        "share as if each was on all of them");
    for (const OnLinks& on : on_links_) {
      Uses& uses = works_[at(on.work)].uses;
      std::erase_if(uses, [&](const Use& link) { return link.resource >= first_link(); });
      uses.push_back({first_link(), all_of_it});
    }
  }
  graph.resources = join_alike(works_);
  graph.works = std::move(works_);
}

}  // namespace shardsim
