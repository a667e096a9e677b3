// calibrate SWEEP: a profile of what `validate --sweep` measured, or of a table of kernels.
#pragma once

#include <optional>
#include <vector>

#include "command.hpp"
#include "measurements/kernel_table.hpp"
#include "measurements/measured_tables.hpp"
#include "output.hpp"

namespace shardsim {

// The sweep or table of kernels among what was given. Throws UsageError for one beside other files,
// and for options that it has no use for.
[[nodiscard]] std::optional<KernelTable> given_sweep(const std::vector<MeasuredTable>& tables,
                                                     const Given& given);
[[nodiscard]] int calibrate_sweep(const KernelTable& table, const Given& given,
                                  const std::vector<Output>& outputs);

}  // namespace shardsim
