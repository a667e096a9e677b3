// Reading the records of tests/golden/models, whose README says what stands in them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/json.hpp"

namespace shardsim::test {

using Shapes = std::map<std::string, std::vector<std::int64_t>>;

// The numbers of "0-3,5".
inline std::vector<std::int64_t> numbers_of(const std::string& set) {
  std::vector<std::int64_t> numbers;
  for (std::size_t at = 0; at < set.size();) {
    std::size_t used = 0;
    const std::int64_t first = std::stoll(set.substr(at), &used);
    at += used;
    std::int64_t last = first;
    if (at < set.size() && set[at] == '-') {
      last = std::stoll(set.substr(at + 1), &used);
      at += used + 1;
    }
    for (std::int64_t i = first; i <= last; ++i) numbers.push_back(i);
    if (at < set.size() && set[at] == ',') ++at;
  }
  return numbers;
}

// Every name of "layers.{0-3,5}.experts.{0-7}.w".
inline std::vector<std::string> names_of(const std::string& pattern) {
  const std::size_t open = pattern.find('{');
  if (open == std::string::npos) return {pattern};
  const std::size_t close = pattern.find('}', open);
  std::vector<std::string> names;
  for (const std::int64_t number : numbers_of(pattern.substr(open + 1, close - open - 1))) {
    for (const std::string& rest : names_of(pattern.substr(close + 1))) {
      names.push_back(pattern.substr(0, open) + std::to_string(number) + rest);
    }
  }
  return names;
}

// Every parameter of a record.
inline Shapes recorded_shapes(const Json& record) {
  Shapes shapes;
  for (const auto& [pattern, shape] : record["parameters"].items()) {
    for (const std::string& name : names_of(pattern)) {
      shapes[name] = shape.get<std::vector<std::int64_t>>();
    }
  }
  return shapes;
}

}  // namespace shardsim::test
