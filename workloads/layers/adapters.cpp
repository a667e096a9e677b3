#include "workloads/layers/adapters.hpp"

#include <fmt/format.h>

namespace shardsim::models {

Value add_adapter(Eager& e, const Adapters& adapters, std::string_view list, const Value& x,
                  const Value& projected) {
  if (adapters.rank == 0) return projected;
  const auto matrix = [&](std::int64_t pair, int side, const Shape& shape) {
    const Scope at(e, fmt::format("{}.{}.{}", list, pair, side));
    return e.parameter("weight", shape);
  };
  const auto first = [&](std::int64_t pair) { return matrix(pair, 0, {adapters.rank, x.last()}); };
  const auto second = [&](std::int64_t pair) {
    return matrix(pair, 1, {projected.last(), adapters.rank});
  };
  for (const std::int64_t pair : adapters.pairs) {
    first(pair);
    second(pair);
  }
  const Value narrow = e.linear(x, first(adapters.used));
  return e.add(projected, e.linear(narrow, second(adapters.used)));
}

}  // namespace shardsim::models
