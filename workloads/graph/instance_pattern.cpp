#include "workloads/graph/instance_pattern.hpp"

#include <fmt/format.h>

#include "workloads/graph/op_graph.hpp"

namespace shardsim {

bool found_in_all(const Pattern& pattern, const std::string& name,
                  const std::vector<std::int32_t>& numbers, const Place& place) {
  const bool first = pattern.search(instance_name(name, numbers.front()));
  for (const std::int32_t number : numbers) {
    if (pattern.search(instance_name(name, number)) == first) continue;
    throw InputError(
        place, fmt::format("the pattern tells {} and {} apart, which is not supported",
                           instance_name(name, numbers.front()), instance_name(name, number)));
  }
  return first;
}

}  // namespace shardsim
