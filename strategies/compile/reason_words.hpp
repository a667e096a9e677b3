// Words that the reasons of collectives share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sharding/sharding.hpp"

namespace shardsim {

// "a, b and 3 more"
[[nodiscard]] std::string listed(std::vector<std::string> names);
void add_once(std::vector<std::string>& names, const std::string& name);
// "splits" of one axis, "split" of several.
[[nodiscard]] std::string_view splits(const AxisList& axes);

}  // namespace shardsim
