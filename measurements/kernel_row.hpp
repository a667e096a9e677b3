// A row of a published table of kernels (kernel_table.hpp), column by column.
#pragma once

#include <string>
#include <vector>

#include "base/json_reader.hpp"
#include "measurements/device_sweep.hpp"

namespace shardsim {

struct KernelRow {
  std::vector<SweptKernel> kernels;  // two where it has a forward's and a backward's time
  std::string why_not;               // that there are none
};

// Throws InputError for a row of a kernel that leaves open what ran, or how long.
[[nodiscard]] KernelRow read_kernel_row(const JsonReader& row);

// Columns whose values tables say in words, or leave out.
[[nodiscard]] const std::vector<std::string>& settable_columns();

}  // namespace shardsim
