// Collectives and kernels of many sizes, run on a backend.
//
// Each is a plan of its own: four of the same, one after the other, of which the median counts.
// Before a collective every process moves 64 MiB: as in a step, caches are cold and processes come
// one after the other.
// Groups are neighbours: of 4 processes two of 2 at the same time, the first two alone, and all 4.
// A single process has kernels and copies only. Collectives can be left out, and so can kernels,
// copies and what is taken of memory.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "measurements/device_sweep.hpp"
#include "validate/backends/backend.hpp"
#include "validate/step/execute.hpp"

namespace shardsim {

enum class SweepPart : std::uint8_t { everything, collectives, kernels };

struct SweepOptions {
  SweepPart part = SweepPart::everything;
  std::optional<std::string> machine = {};  // whose numbers are measured; none: the backend's
  std::vector<CollectiveKind> kinds;
  std::vector<Bytes> sizes;  // of collectives
  // Beside what the library chooses; names are its own.
  std::vector<std::pair<CollectiveKind, std::string>> algorithms;
  Repeats repeats;
};

// All kinds, from 1 KiB to 16 MiB every fourth power of two.
[[nodiscard]] SweepOptions default_sweep();

// `begins` is called before every part with what it is. All processes call it with the same
// options. Throws InputError for an algorithm that the library does not have.
[[nodiscard]] DeviceSweep run_sweep(const SweepOptions& options, Backend& backend,
                                    const std::function<void(const std::string&)>& begins = {});

[[nodiscard]] std::size_t parts_of(const SweepOptions& options, const Backend& backend);

// From 2 up to all: those that divide them.
[[nodiscard]] std::vector<std::int64_t> group_sizes(std::int64_t processes);

}  // namespace shardsim
