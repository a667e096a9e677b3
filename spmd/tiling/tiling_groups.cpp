#include <numeric>

#include "base/index.hpp"
#include "spmd/tiling/tiling_reshape.hpp"

namespace shardsim::spmd {
namespace {

// Twos, then odd numbers up to the root of what is left. What is left itself is not among them, as
// in XLA: of 6 only the 2, of 3 and 5 nothing is borrowed.
std::vector<std::int64_t> factors_to_borrow(std::int64_t number) {
  std::vector<std::int64_t> factors;
  for (; number % 2 == 0; number /= 2) factors.push_back(2);
  for (std::int64_t factor = 3; factor * factor <= number; factor += 2) {
    for (; number % factor == 0; number /= factor) factors.push_back(factor);
  }
  return factors;
}

// `tiling` with exactly `replicas` replicas, taken from tiles of `dims` in this order.
std::optional<Tiling> borrow_replicas(const Tiling& tiling, std::int64_t replicas,
                                      const Dims& dims) {
  std::int64_t most = tiling.replicas();
  for (const std::int64_t dim : dims) most *= tiling.tiles(dim);
  if (most % replicas != 0 || replicas % tiling.replicas() != 0) return {};
  std::int64_t missing = replicas / tiling.replicas();
  Shape tiles = tiling.tiles();
  std::vector<int> numbers(tiling.devices().size());
  std::iota(numbers.begin(), numbers.end(), 0);
  for (const std::int64_t dim : dims) {
    for (const std::int64_t factor : factors_to_borrow(tiling.tiles(dim))) {
      if (missing % factor != 0) continue;
      tiles[at(dim)] /= factor;
      missing /= factor;
      if (missing == 1) return Tiling::tiled(std::move(tiles), std::move(numbers));
    }
  }
  return {};
}

GroupedTiling replicated_groups(std::int64_t groups, std::int64_t devices, std::size_t rank) {
  GroupedTiling result;
  result.groups.resize(at(groups), std::vector<int>(at(devices / groups)));
  int next = 0;
  for (std::vector<int>& group : result.groups) {
    for (int& device : group) device = next++;
  }
  result.dims = {static_cast<std::int64_t>(rank)};
  result.sizes = {groups};
  result.rank = rank;
  return result;
}

}  // namespace

GroupedTiling group_replicas(const Tiling& tiling, std::int64_t groups, std::int64_t devices,
                             std::size_t rank, const Dims& may_replicate) {
  const auto replicas_dim = static_cast<std::int64_t>(tiling.tiles().size());
  if (tiling.is_partial() && tiling.replicas() % groups == 0) {
    return group_by(tiling, {replicas_dim}, {groups});
  }
  if (!tiling.is_replicated()) {
    const auto borrowed = borrow_replicas(tiling, groups, may_replicate);
    if (borrowed && borrowed->is_partial()) return group_by(*borrowed, {replicas_dim});
  }
  return replicated_groups(groups, devices, rank);
}

}  // namespace shardsim::spmd
