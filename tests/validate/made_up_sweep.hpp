// Sweeps that nobody measured: tests put records in.
#pragma once

#include <cstdint>
#include <string>

#include "measurements/device_sweep.hpp"

namespace shardsim::testing {

// On one host, of a backend that has such profiles.
inline DeviceSweep sweep_without_records(std::int64_t processes,
                                         const std::string& profile = "cpu-host") {
  DeviceSweep sweep;
  sweep.file = "sweep.json";
  sweep.date = "2026-11-22";
  sweep.profile = profile;
  sweep.on = {profile == "cpu-host" ? "mpi" : "nccl", "made up", processes, {"here"}};
  sweep.processor = "none";
  return sweep;
}

}  // namespace shardsim::testing
