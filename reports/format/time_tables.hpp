// Where the time of a step goes, by part and cause (sim/step/time_parts.hpp).
#pragma once

#include "reports/format/figures.hpp"
#include "reports/format/tables.hpp"

namespace shardsim {

// Of the class that computes longest. What is not there has no row.
[[nodiscard]] Table time_table(const Figures& figures);
[[nodiscard]] Table class_table(const Figures& figures);
// A column for each cause that any class has.
[[nodiscard]] Table class_time_table(const Figures& figures);

}  // namespace shardsim
