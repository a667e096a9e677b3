// Which algorithms collectives are told to take, as users write it
// (sim/collectives/told_algorithms.hpp):
//
//   {"all-reduce": "Ring/LL128", "all-reduce over data+fsdp": "NVLS", "all-gather": "/Simple"}
//   "all-reduce=Ring/LL128, all-reduce over data+fsdp=NVLS, all-gather=/Simple"
//
// ALGORITHM, ALGORITHM/PROTOCOL or /PROTOCOL by kind, or by kind and the axes of the mesh that it
// goes over. Those that name axes come first.
#pragma once

#include <vector>

#include "base/json_reader.hpp"
#include "sim/collectives/told_algorithms.hpp"

namespace shardsim {

// Throws InputError. Whether algorithms are there is for ToldAlgorithms, which knows the machine.
[[nodiscard]] std::vector<ToldAlgorithm> read_algorithms(const JsonReader& json);

}  // namespace shardsim
