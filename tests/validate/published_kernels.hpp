// The published tables of kernels that surfaces of shipped profiles are made of, as
// tests/measurements/kernels.json chooses their rows.
#pragma once

#include <string>
#include <vector>

#include "measurements/device_sweep.hpp"

namespace shardsim::test {

struct PublishedKernels {
  std::string name;
  DeviceSweep sweep;
};

[[nodiscard]] std::vector<PublishedKernels> published_kernels();

}  // namespace shardsim::test
