#include "strategies/compile/reason_words.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace shardsim {

std::string listed(std::vector<std::string> names) {
  constexpr std::size_t names_shown = 4;
  const std::size_t count = names.size();
  if (count > names_shown) {
    names.resize(names_shown - 1);
    return fmt::format("{} and {} more", fmt::join(names, ", "), count - names.size());
  }
  if (count < 2) return count == 0 ? "" : names.front();
  const std::string last = names.back();
  names.pop_back();
  return fmt::format("{} and {}", fmt::join(names, ", "), last);
}

void add_once(std::vector<std::string>& names, const std::string& name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

std::string_view splits(const AxisList& axes) { return axes.size() == 1 ? "splits" : "split"; }

}  // namespace shardsim
