// A profile from what was measured on devices: `shardsim calibrate SWEEP`.
//
// What the sweep's base profile says of a launch, of a step's latency and of bandwidths is replaced
// by what fits best (robust_fit.hpp), each with its 95 % interval in its note:
//
//   collective  launch + steps * latency + wire bytes / bandwidth, of all kinds and sizes together
//   kernel      launch + bytes / bandwidth, or by its shape (kernel_terms.hpp)
//   copy        latency + bytes / bandwidth of the link to the host, in both directions
//
// A host is a node where the network is fitted. Of a sweep over several, as many processes on each,
// one host after the other, latency and bandwidth are fitted twice: scale_up inside hosts, told by
// groups that stay there, and scale_out between them, told by the others. The one NIC of a node is
// all that leaves it. Where every process has a host to itself nothing tells scale_up: it stays the
// base profile's.
//
// Bandwidths and peaks that are estimates become the highest that any record reaches, published
// ones stay; efficiencies are what fits over these. Products of several types, and attention, have
// a rate and a surface each; the efficiency of what has no shape is that of products of bf16. Of a
// profile whose collectives go as NCCL or RCCL choose, all of the network stays. What is left is a
// calibration (fit_calibration.hpp) that the profile holds, before those of a profile whose network
// stays: by region (inside a node, over nodes), collective, algorithm and number of nodes. Of
// collectives those count that the library chose an algorithm for, with all processes in a group at
// the same time. A sweep of kernels alone, such as published tables make, leaves the network as it
// is.
//
// Example: cpu-host says 1 us a step, all collectives fit best with 2.3: the profile says 2.3 us.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hardware_profiles/machine.hpp"
#include "measurements/device_sweep.hpp"
#include "validate/fit/fitted_numbers.hpp"
#include "validate/fit/kernel_errors.hpp"

namespace shardsim {

struct FittedProfile {
  Profile profile;
  std::vector<FittedNumber> numbers;
  // Of the profile's times for the records that it was made of, from smallest_judged on, and for
  // those of every second size by a profile made of the others.
  std::optional<ErrorSummary> collectives;
  std::optional<ErrorSummary> left_out_collectives;
  std::optional<ErrorSummary> kernels;
  std::optional<ErrorSummary> left_out_kernels;  // every second one, by a profile of the others
  std::vector<KernelErrors> kernels_by_size;
  std::optional<ErrorSummary> copies;
};

// Throws InputError for an unknown base profile or one without nodes, for a sweep over several
// hosts with fewer processes on each than NCCL's or RCCL's profile has devices, and as
// processes_per_host(); for one whose records do not tell bandwidths, or what is between hosts.
[[nodiscard]] FittedProfile fit_profile(const DeviceSweep& measured, const std::string& name);

}  // namespace shardsim
