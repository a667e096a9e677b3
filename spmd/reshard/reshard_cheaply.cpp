#include <vector>

#include "spmd/reshard/reshard_search.hpp"
#include "spmd/reshard/reshard_steps.hpp"
#include "spmd/wire_bytes.hpp"

namespace shardsim::spmd {
namespace {

// What one device sends between two tilings of a tensor where XLA's partitioner brings it from one
// to the other. Found on a program of its own: what is not taken leaves nothing behind.
class UsualCost {
 public:
  explicit UsualCost(const Sharded& like)
      : shape_(like.shape),
        type_(like.context->builder().type(like.value)),
        devices_(like.context->devices()) {}

  [[nodiscard]] double operator()(const Tiling& from, const Tiling& to) const {
    stablehlo::Module module;
    module.functions.emplace_back().regions.emplace_back();
    Builder builder(module);
    Context context(builder, devices_);
    TensorType type = type_;
    type.dims = shard_shape(shape_, from);
    const ValueId value = builder.add_argument(type, "");
    const Sharded moved = reshard_like_xla({value, shape_, from, &context}, to, true);
    return wire_bytes_between(module.functions.front(), value, moved.value);
  }

 private:
  const Shape& shape_;
  TensorType type_;
  int devices_;
};

struct Way {
  Sharded start;
  std::vector<Tiling> stops;  // the last is the target
  double bytes = 0;
};

// Of the stops of a path those at which XLA's ways between them cost least together, and of these
// the fewest: it does in one all-to-all what a path has as several steps.
Way through(const Sharded& start, const std::vector<Tiling>& path, const UsualCost& cost) {
  std::vector<Way> best = {{start, {}, 0}};
  for (std::size_t to = 0; to < path.size(); ++to) {
    Way way;
    for (std::size_t from = 0; from <= to; ++from) {
      const Tiling& before = from == 0 ? start.tiling : path[from - 1];
      const double bytes = best[from].bytes + cost(before, path[to]);
      if (from > 0 && bytes >= way.bytes) continue;
      way = best[from];
      way.bytes = bytes;
      way.stops.push_back(path[to]);
    }
    best.push_back(std::move(way));
  }
  return best.back();
}

// XLA's way, unless one that sends less is found. It may begin at what the value was resharded to
// before.
Way cheapest_way(const Sharded& from, const Tiling& to) {
  const Context& context = *from.context;
  const UsualCost cost(from);
  const double size = element_bytes(context.builder().type(from.value));
  std::vector<Sharded> starts = {from};
  if (const auto known = context.cache.find(from.value); known != context.cache.end()) {
    for (const auto& [tiling, value] : known->second) starts.push_back(value);
  }
  Way best{from, {to}, cost(from.tiling, to)};
  for (const Sharded& start : starts) {
    const double bytes = cost(start.tiling, to);
    if (bytes < best.bytes) best = {start, {to}, bytes};
  }
  for (const Sharded& start : starts) {
    if (best.bytes <= least_bytes(from.shape, size, start.tiling, to)) continue;
    const auto path = cheapest_path(from.shape, size, start.tiling, to, context.digits, best.bytes);
    if (!path) continue;
    Way way = through(start, path->steps, cost);
    if (way.bytes < best.bytes) best = std::move(way);
  }
  return best;
}

}  // namespace

Sharded reshard_cheaply(const Sharded& from, const Tiling& to) {
  if (from.context->digits.empty() || is_splat(from)) return reshard_like_xla(from, to, true);
  const Way way = cheapest_way(from, to);
  Sharded value = way.start;
  for (const Tiling& stop : way.stops) {
    value = reshard_like_xla(value, stop, true);
    remember(from, value);
  }
  return value;
}

}  // namespace shardsim::spmd
