#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "laws.hpp"

namespace shardsim::laws {
namespace {

constexpr double faster = 1.3;  // no power of two: what is chosen by speed sees another one

template <class T>
void scale(Sourced<T>& number, double by) {
  number.value = T(number.value.count() * by);
}

template <class Visit>
void for_each_link(Profile& profile, Visit visit) {
  if (auto* cluster = std::get_if<ClusterProfile>(&profile.network)) {
    visit(cluster->scale_up);
    if (cluster->scale_out) visit(*cluster->scale_out);
  } else if (auto* torus = std::get_if<TorusProfile>(&profile.network)) {
    visit(torus->link);
    if (torus->chip) visit(torus->chip->link);
    if (torus->dcn) visit(*torus->dcn);
  }
}

using Change = std::function<void(Profile&)>;

// NCCL divides what a device has by what a link has and counts links: of as many, each is faster.
void keep_number_of_links(Profile& profile) {
  auto* cluster = std::get_if<ClusterProfile>(&profile.network);
  if (cluster == nullptr) return;
  if (cluster->nccl && cluster->nccl->nvlink_bandwidth) {
    scale(*cluster->nccl->nvlink_bandwidth, faster);
  }
  if (cluster->rccl) scale(cluster->rccl->link_bandwidth, faster);
}

void faster_links(Profile& profile) {
  for_each_link(profile, [](LinkProfile& link) { scale(link.bandwidth, faster); });
  keep_number_of_links(profile);
  if (auto* network = std::get_if<NetworkDescription>(&profile.network)) {
    network->wire.bandwidth = network->wire.bandwidth * faster;
  }
}

void more_links_inside(Profile& profile) {
  if (auto* cluster = std::get_if<ClusterProfile>(&profile.network)) {
    scale(cluster->scale_up.bandwidth, faster);
  }
}

void faster_inside(Profile& profile) {
  more_links_inside(profile);
  keep_number_of_links(profile);
}

void faster_outside(Profile& profile) {
  auto* cluster = std::get_if<ClusterProfile>(&profile.network);
  if (cluster != nullptr && cluster->scale_out) scale(cluster->scale_out->bandwidth, faster);
}

void lower_latency(Profile& profile) {
  for_each_link(profile, [](LinkProfile& link) { scale(link.latency, 1 / faster); });
  if (auto* network = std::get_if<NetworkDescription>(&profile.network)) {
    network->wire.latency = network->wire.latency / faster;
  }
}

void faster_launch(Profile& profile) { scale(profile.collective_launch, 1 / faster); }

void faster_memory(Profile& profile) { scale(profile.device.memory_bandwidth, faster); }

void faster_kernels(Profile& profile) {
  for (auto& [dtype, peak] : profile.device.peak) scale(peak, faster);
}

// The step of a compiled experiment on a machine with other numbers.
Timed changed(const Prediction& before, const Change& change) {
  Profile profile = before.machine.profile;
  change(profile);
  Machine machine = make_machine(profile, before.machine.devices, before.experiment.topology, {});
  Result result = simulate(before.step.plan, machine, simulation_options(before.experiment, {}));
  return timed({before.experiment, std::move(machine), before.step, std::move(result)});
}

// Algorithms are those that the machine's library takes (NCCL, RCCL, XLA), by its own estimate and
// not by what we find: on links of another speed it may take a worse one. The law is of what takes
// the same ones.
std::optional<Violation> quicker(const Trial& trial, const Change& change) {
  const Timed slow = timed(predict_trial(trial));
  const Timed quick = changed(slow.prediction, change);
  if (quick.algorithms != slow.algorithms) return std::nullopt;
  return not_faster(quick, slow);
}

// How often the library takes worse algorithms on a quicker machine.
std::optional<Violation> worse_choice(const Trial& trial, const Change& change) {
  const Timed slow = timed(predict_trial(trial));
  const Timed quick = changed(slow.prediction, change);
  if (quick.algorithms == slow.algorithms) return std::nullopt;
  return not_shorter("alone the quicker step takes", quick.alone, slow.alone);
}

std::optional<Violation> longer(const Trial& trial, const Change& change) {
  const Timed slow = timed(predict_trial(trial));
  return not_shorter("the quicker step takes", changed(slow.prediction, change).step(),
                     slow.step());
}

const std::vector<std::pair<const char*, Change>> changes = {
    {"faster links", faster_links},
    {"faster links in a node", faster_inside},
    {"faster links between nodes", faster_outside},
    {"links of lower latency", lower_latency},
    {"a shorter launch of collectives", faster_launch},
    {"faster memory", faster_memory},
    {"faster arithmetic", faster_kernels}};

template <class Check>
Law law(const char* name, Check check, const Change& change) {
  return {name, [check, change](const Trial& trial) { return check(trial, change); }};
}

template <class Check>
std::vector<Law> for_each_change(Check check) {
  std::vector<Law> laws;
  for (const auto& [name, change] : changes) laws.push_back(law(name, check, change));
  return laws;
}

template <class Check>
std::vector<Law> for_more_links_too(Check check) {
  std::vector<Law> laws = for_each_change(check);
  laws.push_back(law("more links in a node", check, more_links_inside));
  return laws;
}

}  // namespace

// Memory depends on what is done in which order, not on how long it takes.
std::optional<Violation> same_memory(const Trial& trial) {
  const Timed slow = timed(predict_trial(trial));
  for (const auto& [name, change] : changes) {
    const Bytes quick = changed(slow.prediction, change).peak();
    if (quick == slow.peak()) continue;
    const auto before = static_cast<double>(slow.peak().count());
    const auto after = static_cast<double>(quick.count());
    return Violation{std::abs(before - after) / before,
                     fmt::format("the peak is {} B, with {} {} B", before, name, after)};
  }
  return std::nullopt;
}

std::vector<Law> machine_laws() {
  std::vector<Law> laws = for_each_change(quicker);
  laws.push_back({"memory on a quicker machine", same_memory});
  return laws;
}

std::vector<Law> anomalies() { return for_more_links_too(longer); }

std::vector<Law> choices() { return for_more_links_too(worse_choice); }

}  // namespace shardsim::laws
