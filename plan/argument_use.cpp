#include "plan/argument_use.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <vector>

namespace shardsim {
namespace {

constexpr std::array<std::string_view, 11> optimizer_parts = {
    "mu",        "nu",   "count", "trace", "momentum", "velocity", "opt_state", "optimizer_state",
    "optimizer", "adam", "sgd"};
constexpr std::array<std::string_view, 3> parameter_parts = {"params", "parameters", "weights"};

bool is_of_a_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// The names that a way is made of: "result", "0", "mu", ...
std::vector<std::string> parts_of_way(std::string_view way) {
  std::vector<std::string> parts(1);
  for (const char c : way) {
    if (is_of_a_name(c)) {
      parts.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!parts.back().empty()) {
      parts.emplace_back();
    }
  }
  return parts;
}

template <class Names>
bool has_any(const std::vector<std::string>& parts, const Names& names) {
  return std::any_of(parts.begin(), parts.end(), [&](const std::string& part) {
    return std::find(names.begin(), names.end(), part) != names.end();
  });
}

void fold_layer(std::string_view way, ArgumentUse& use) {
  use.name = std::string(way);
  for (std::size_t dot = way.find('.'); dot != std::string_view::npos;
       dot = way.find('.', dot + 1)) {
    const std::size_t begin = dot + 1;
    const std::size_t end = way.find_first_not_of("0123456789", begin);
    if (end == begin || end == std::string_view::npos || way[end] != '.') continue;
    const auto read = std::from_chars(way.data() + begin, way.data() + end, use.layer);
    if (read.ec != std::errc()) continue;
    use.name.replace(begin, end - begin, "{}");
    return;
  }
}

}  // namespace

ArgumentUse use_of_argument(std::string_view way, bool is_handed_on) {
  const std::vector<std::string> parts = parts_of_way(way);
  ArgumentUse use;
  fold_layer(way, use);
  if (is_handed_on) {
    use.category =
        has_any(parts, optimizer_parts) ? BufferCategory::optimizer : BufferCategory::parameters;
  } else if (has_any(parts, parameter_parts)) {
    use.category = BufferCategory::parameters;
  }
  return use;
}

}  // namespace shardsim
