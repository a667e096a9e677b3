// What MaxText calls each parameter, and the logical axes of its dimensions, with words in braces
// for what families and versions have otherwise (maxtext.cpp fills them in).
#pragma once

#include <span>

#include "workloads/views/form_text.hpp"

namespace shardsim {

[[nodiscard]] std::span<const ViewRow> maxtext_rows();

}  // namespace shardsim
