// One kernel on one device for `shardsim kernel`: its time and where that comes from.
#pragma once

#include <string>

#include "base/json_reader.hpp"
#include "base/text.hpp"
#include "hardware_profiles/machine.hpp"
#include "plan/plan.hpp"

namespace shardsim {

[[nodiscard]] std::string kernel_report_text(const Profile& profile, const Kernel& kernel,
                                             std::size_t width = default_text_width);
// "shardsim/kernel/1": {"machine", "device", "kernel", "time_s", "launch_s", "computing_s",
// "moving_s", "clock", "sustained_s", "flops_per_s", "of_peak", "bytes_per_s", "evidence",
// "scaled_from", "source"}
[[nodiscard]] Json kernel_report_json(const Profile& profile, const Kernel& kernel);

}  // namespace shardsim
