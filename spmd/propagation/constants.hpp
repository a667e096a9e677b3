// Constants as ops: all elements equal ("splats"), read and made.
#pragma once

#include <optional>
#include <string>

#include "stablehlo/module.hpp"

namespace shardsim::spmd {

// "1.000000e+00" of dense<1.000000e+00>; nothing when the op is no constant or elements differ.
[[nodiscard]] std::optional<std::string> splat_text(const stablehlo::Op& op);
// The number, where it is finite and real; `element` is the element type.
[[nodiscard]] std::optional<double> splat_number(const stablehlo::Op& op,
                                                 const std::string& element);
[[nodiscard]] stablehlo::Op constant_op(std::string text);
// An attribute that is a list of integers.
[[nodiscard]] stablehlo::NamedAttribute integers_attribute(std::string name,
                                                           const std::vector<std::int64_t>& values);

}  // namespace shardsim::spmd
