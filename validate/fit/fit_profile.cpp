#include "validate/fit/fit_profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "base/error.hpp"
#include "base/text.hpp"
#include "sim/step/host_copy_cost.hpp"
#include "validate/fit/collective_terms.hpp"
#include "validate/fit/fit_calibration.hpp"
#include "validate/fit/fit_device.hpp"
#include "validate/fit/kernel_errors.hpp"
#include "validate/fit/size_errors.hpp"

namespace shardsim {
namespace {

class ProfileFit {
 public:
  explicit ProfileFit(const DeviceSweep& sweep, const std::string& name)
      : sweep_(sweep), profile_(base_of(sweep)), numbers_(sweep) {
    profile_.name = name;
    profile_.title = sweep.source.empty() ? fmt::format("{}, {}, measured {}", sweep.processor,
                                                        where_of(sweep), sweep.date)
                                          : fmt::format("{}, kernels as published", profile_.title);
    profile_.path = sweep.file;
    if (!sweep.collectives.empty()) base_calibrations_.swap(profile_.calibrations);
    if (hosts() > 1 && !sweep.collectives.empty() && !library_chooses()) put_on_hosts();
  }

  FittedProfile run() {
    if (!sweep_.collectives.empty() && !library_chooses()) fit_collectives();
    fit_device(sweep_, profile_.device, numbers_);
    if (!sweep_.collectives.empty()) calibrate();
    FittedProfile fitted;
    fitted.profile = profile_;
    fitted.numbers = numbers_.list();
    return fitted;
  }

 private:
  [[nodiscard]] static Profile base_of(const DeviceSweep& sweep) {
    const Place place{sweep.file, "/profile"};
    Profile profile = load_profile(sweep.profile, place);
    if (sweep.collectives.empty() && sweep.kernels.empty() && sweep.copies.empty()) {
      throw InputError({sweep.file, ""}, "has no records to fit a profile to");
    }
    const auto* cluster = std::get_if<ClusterProfile>(&profile.network);
    if (cluster == nullptr) {
      if (sweep.collectives.empty() && sweep.on.hosts.size() <= 1) return profile;
      throw InputError(place, fmt::format("{} has no nodes to fit", sweep.profile));
    }
    const std::int64_t most = cluster->devices_per_node.value;
    const std::int64_t on_host = processes_per_host(sweep);
    if (on_host > most) {
      throw InputError({sweep.file, "/backend/processes"},
                       fmt::format("a node of {} has {} at most", sweep.profile, most));
    }
    const bool chooses = cluster->nccl || cluster->rccl;
    if (sweep.on.hosts.size() == 1 || !chooses || sweep.collectives.empty()) return profile;
    // What NCCL chooses hangs on all of a host's devices.
    const std::int64_t of_host = devices_per_host(*cluster);
    if (on_host != of_host) {
      throw InputError({sweep.file, "/backend/processes"},
                       fmt::format("over several hosts all devices of each take part: {} has {} "
                                   "on a host, the sweep {}",
                                   sweep.profile, of_host, on_host));
    }
    (void)make_machine(profile, sweep.on.processes, std::nullopt, {sweep.file, "/backend/hosts"});
    return profile;
  }

  // Of a network that is not the profile's: a node is a host.
  void put_on_hosts() {
    ClusterProfile& nodes = cluster();
    nodes.devices_per_node = {processes_per_host(sweep_), numbers_.source("processes on a host")};
    nodes.devices_per_host.reset();
    nodes.scale_out.reset();
    // What comes of it is fitted: a network is slower than what is inside.
    constexpr double slower = 10;
    ScaleOutProfile& network = nodes.scale_out.emplace();
    network.bandwidth.value = nodes.scale_up.bandwidth.value / slower;
    network.efficiency.value = 1;
    network.latency.value = nodes.scale_up.latency.value * slower;
    network.nics_per_node = {1, numbers_.source("what leaves a host is measured together")};
  }

  [[nodiscard]] ClusterProfile& cluster() { return std::get<ClusterProfile>(profile_.network); }
  // Then numbers of the network stay, and with them calibrations of what was not measured.
  [[nodiscard]] bool library_chooses() const {
    const auto* nodes = std::get_if<ClusterProfile>(&profile_.network);
    return nodes != nullptr && (nodes->nccl || nodes->rccl);
  }
  [[nodiscard]] std::size_t hosts() const { return sweep_.on.hosts.size(); }
  void fit_collectives();
  void set_link(LinkProfile& link, const LinkFit& fit,
                const std::pair<const char*, const char*>& quantities);
  void calibrate();

  const DeviceSweep& sweep_;
  Profile profile_;
  std::vector<Calibration> base_calibrations_;  // that the sweep's are in place of
  FittedNumbers numbers_;
};

void ProfileFit::set_link(LinkProfile& link, const LinkFit& fit,
                          const std::pair<const char*, const char*>& quantities) {
  numbers_.set(link.latency, quantities.first, fit.step);
  if (!is_told(fit.byte)) return numbers_.leave(link.bandwidth, quantities.second);
  numbers_.set_rate(link.bandwidth, link.efficiency, quantities.second, fit.byte, fit.most);
}

void ProfileFit::fit_collectives() {
  const CollectiveFit fit = fit_terms(profile_, sweep_.collectives, sweep_.on.processes);
  if (!fit.across && !is_told(fit.inside.byte))
    numbers_.say_undetermined("/collectives", "the bandwidth");
  numbers_.set(profile_.collective_launch, "collective_launch", fit.launch);
  set_link(cluster().scale_up, fit.inside,
           {"cluster.scale_up.latency", "cluster.scale_up.bandwidth"});
  if (!fit.across) return;
  // No other profile's numbers are there to stay.
  if (!is_told(fit.across->byte)) {
    numbers_.say_undetermined("/collectives", "the bandwidth between hosts");
  }
  if (!fit.across->step.determined) {
    numbers_.say_undetermined("/collectives", "a step's latency between hosts",
                              "more kinds and sizes");
  }
  set_link(*cluster().scale_out, *fit.across,
           {"cluster.scale_out.latency", "cluster.scale_out.bandwidth"});
}

// A table for each kind and size of group.
void ProfileFit::calibrate() {
  std::map<std::string, CalibrationTable> tables;
  std::map<std::pair<std::string, Bytes>, const SweptCollective*> rows;
  SweptCosts uncalibrated(profile_, sweep_.on.processes, collective_models::uncalibrated);
  for (const SweptCollective& swept : sweep_.collectives) {
    const CostBreakdown cost = uncalibrated.of(swept);
    assert(cost.curve);
    const std::string id =
        fmt::format("{} over {} processes", name_of(swept.kind), swept.group_size);
    CalibrationTable& table = tables[id];
    table.id = id;
    table.source = sweep_.file;
    table.samples.push_back({*cost.curve, swept.payload, cost.total(), swept.time.median});
    rows[{id, swept.payload}] = &swept;
  }
  Calibration header;
  header.name = profile_.name;
  header.title = profile_.title;
  header.date = sweep_.date;
  header.regions = {Region::node};
  if (hosts() > 1) header.regions = {Region::node, Region::nodes, Region::rail};
  std::vector<CalibrationTable> all;
  for (auto& [id, table] : tables) all.push_back(std::move(table));
  profile_.calibrations = {fit_calibration(header, all)};
  SweptCosts calibrated(profile_, sweep_.on.processes, collective_models::simulated);
  add_errors(profile_.calibrations[0], all,
             [&](const CalibrationTable& table, const CalibrationSample& sample) {
               return calibrated.of(*rows.at({table.id, sample.bytes})).total();
             });
  if (!library_chooses()) return;
  profile_.calibrations.insert(profile_.calibrations.end(), base_calibrations_.begin(),
                               base_calibrations_.end());
}

// Absolute relative errors of the times of those that are judged.
std::optional<ErrorSummary> collective_errors(const Profile& profile,
                                              const std::vector<SweptCollective>& collectives,
                                              std::int64_t processes) {
  std::vector<double> errors;
  if (collectives.empty()) return std::nullopt;  // the profile may be of a network without nodes
  SweptCosts costs(profile, processes, collective_models::simulated);
  for (const SweptCollective& swept : collectives) {
    if (swept.payload < smallest_judged) continue;
    const Seconds predicted = costs.of(swept).total();
    errors.push_back(std::abs(predicted.count() / swept.time.median.count() - 1));
  }
  return errors.empty() ? std::nullopt : std::optional(summarize(errors));
}

// Nothing where the profile does not know the link.
std::optional<ErrorSummary> copy_errors(const Profile& profile,
                                        const std::vector<SweptCopy>& copies,
                                        std::int64_t devices) {
  if (copies.empty() || !profile.device.host_link) return std::nullopt;
  std::vector<double> errors;
  for (const SweptCopy& copy : copies) {
    const HostCopyCost cost = host_copy_cost(profile, devices, copy.bytes);
    const Seconds predicted = cost.latency + cost.transfer;
    errors.push_back(std::abs(predicted.count() / copy.time.median.count() - 1));
  }
  return summarize(errors);
}

// Every second size, and the others.
struct Halves {
  DeviceSweep kept;
  DeviceSweep left_out;
};

Halves halves_of(const DeviceSweep& sweep) {
  std::set<Bytes> sizes;
  for (const SweptCollective& swept : sweep.collectives) sizes.insert(swept.payload);
  Halves halves{sweep, sweep};
  const auto is_left_out = [&](const SweptCollective& swept) {
    return std::distance(sizes.begin(), sizes.find(swept.payload)) % 2 == 1;
  };
  std::erase_if(halves.kept.collectives, is_left_out);
  std::erase_if(halves.left_out.collectives, std::not_fn(is_left_out));
  return halves;
}

// By a profile made of the others; nothing where half of them tell too little.
std::optional<ErrorSummary> left_out_kernels(const DeviceSweep& sweep, const std::string& name) {
  KernelHalves halves = halves_of(sweep.kernels);
  DeviceSweep kept = sweep;
  kept.collectives.clear();
  kept.kernels = std::move(halves.kept);
  if (halves.left_out.empty()) return std::nullopt;
  try {
    return all_kernel_errors(ProfileFit(kept, name).run().profile.device, halves.left_out);
  } catch (const InputError&) {
    return std::nullopt;
  }
}

}  // namespace

FittedProfile fit_profile(const DeviceSweep& measured, const std::string& name) {
  DeviceSweep sweep = measured;
  std::erase_if(sweep.collectives, [&](const SweptCollective& swept) {
    const bool all_take_part = swept.group_size * swept.groups == sweep.on.processes;
    return !all_take_part || !swept.algorithm.empty();
  });
  FittedProfile fitted = ProfileFit(sweep, name).run();
  const std::int64_t processes = sweep.on.processes;
  fitted.collectives = collective_errors(fitted.profile, sweep.collectives, processes);
  fitted.kernels = all_kernel_errors(fitted.profile.device, sweep.kernels);
  fitted.kernels_by_size = kernel_errors(fitted.profile.device, sweep.kernels);
  fitted.left_out_kernels = left_out_kernels(sweep, name);
  fitted.copies = copy_errors(fitted.profile, sweep.copies, processes_per_host(sweep));
  const Halves halves = halves_of(sweep);
  if (halves.kept.collectives.empty() || halves.left_out.collectives.empty()) return fitted;
  try {
    const Profile half = ProfileFit(halves.kept, name).run().profile;
    fitted.left_out_collectives = collective_errors(half, halves.left_out.collectives, processes);
  } catch (const InputError&) {
    // Half of the sizes tell too little: no errors are told.
  }
  return fitted;
}

}  // namespace shardsim
