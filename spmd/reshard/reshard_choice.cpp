#include "spmd/reshard/reshard_choice.hpp"

#include <algorithm>
#include <cassert>
#include <map>

#include "base/index.hpp"

namespace shardsim::spmd {
namespace {

using DimsBySize = std::map<std::int64_t, Dims>;

void remove_dim(DimsBySize& dims, std::int64_t size, std::int64_t dim) {
  Dims& list = dims[size];
  list.erase(std::remove(list.begin(), list.end(), dim), list.end());
  if (list.empty()) dims.erase(size);
}

bool same_counts(const DimsBySize& a, const DimsBySize& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.size() == y.second.size();
  });
}

// Every device's tile of `fine` lies within its tile of `coarse`.
bool nests(const Tiling& fine, const Tiling& coarse) {
  const std::size_t rank = coarse.tiles().size();
  std::vector<Dims> places(coarse.devices().size());
  coarse.each([&](const Dims& index, int device) { places[at(device)] = index; });
  bool nested = true;
  fine.each([&](const Dims& index, int device) {
    for (std::size_t i = 0; i < rank; ++i) {
      const std::int64_t factor = fine.tiles()[i] / coarse.tiles()[i];
      if (index[i] / factor != places[at(device)][i]) nested = false;
    }
  });
  return nested;
}

SplitTilings split_both(const Tiling& from, const Tiling& to, std::int64_t dim,
                        std::int64_t major) {
  return {split_dim(from, dim, major), split_dim(to, dim, major), dim};
}

}  // namespace

bool can_permute(const Tiling& from, const Tiling& to) {
  return !from.is_replicated() && !to.is_replicated() && from.tiles() == to.tiles() &&
         from.replicas() == to.replicas() && from.devices() != to.devices();
}

std::optional<std::vector<std::pair<std::int64_t, std::int64_t>>> all_to_all_dims(
    const Tiling& from, const Tiling& to) {
  const Shape source = from.extents();
  const Shape target = to.extents();
  if (from.is_replicated() || to.is_replicated() || source.size() != target.size() ||
      from.tile_count() != to.tile_count()) {
    return {};
  }
  DimsBySize sources;
  DimsBySize targets;
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == target[i]) continue;
    sources[source[i]].push_back(static_cast<std::int64_t>(i));
    targets[target[i]].push_back(static_cast<std::int64_t>(i));
  }
  if (sources.empty() || !same_counts(sources, targets)) return {};
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs;
  while (!sources.empty()) {
    const std::int64_t size = sources.begin()->first;
    const std::int64_t i = sources.begin()->second.back();
    const std::int64_t wanted = target[at(i)];
    if (wanted == size) {
      remove_dim(sources, size, i);
      remove_dim(targets, size, i);
      continue;
    }
    if (size != 1 && wanted % size != 0) return {};
    // Of the dimensions that have what i wants, one whose own wish this exchange serves: of a
    // dimension of one tile one that is still of use to others, otherwise one that wants `size`.
    const Dims& candidates = sources[wanted];
    const auto serves = [&](std::int64_t j) {
      return size == 1 ? target[at(j)] != 1 : target[at(j)] == size;
    };
    const auto found = std::find_if(candidates.begin(), candidates.end(), serves);
    const std::int64_t j = found == candidates.end() ? candidates.back() : *found;
    pairs.emplace_back(j, i);
    remove_dim(targets, wanted, i);
    sources.begin()->second.back() = j;
    remove_dim(sources, wanted, j);
  }
  return pairs;
}

std::optional<Tiling> sliced_tiling(const Tiling& partial, const Tiling& to) {
  if (!partial.is_partial() || to.is_replicated()) return {};
  const std::size_t rank = partial.tiles().size();
  if (partial.devices().size() != to.devices().size() || rank != to.tiles().size()) return {};
  Shape extents = partial.tiles();
  Dims order;
  std::int64_t added = 0;
  for (std::size_t i = 0; i < rank; ++i) {
    if (to.tiles()[i] % partial.tiles()[i] != 0) return {};
    const std::int64_t factor = to.tiles()[i] / partial.tiles()[i];
    order.push_back(static_cast<std::int64_t>(i));
    if (factor == 1) continue;
    order.push_back(static_cast<std::int64_t>(rank) + added++);
    extents.push_back(factor);
  }
  if (nests(to, partial)) return to;
  // The replicas, taken apart, move behind the dimensions that they split.
  if (to.is_partial()) {
    order.push_back(static_cast<std::int64_t>(extents.size()));
    extents.push_back(to.replicas());
  }
  const Tiling apart = reshape_extents(partial, extents, false);
  const Tiling moved = transpose(apart, order);
  return reshape_extents(moved, to.extents(), to.is_partial());
}

Tiling after_all_to_all(const Tiling& from, const Dims& sources, const Dims& targets) {
  Shape extents = from.extents();
  Tiling result = from;
  for (std::size_t pair = 0; pair < sources.size(); ++pair) {
    const std::int64_t source = sources[pair];
    const std::int64_t target = targets[pair];
    const std::int64_t kept = extents[at(target)];
    const std::int64_t moved = extents[at(source)] / kept;
    assert(source != target && kept * moved == extents[at(source)]);
    Shape apart;
    std::int64_t from_place = 0;
    std::int64_t to_place = 0;
    for (std::size_t i = 0; i < extents.size(); ++i) {
      const auto dim = static_cast<std::int64_t>(i);
      apart.push_back(dim == source ? kept : extents[i]);
      if (dim == source) {
        from_place = static_cast<std::int64_t>(apart.size());
        apart.push_back(moved);
      } else if (dim == target) {
        to_place = static_cast<std::int64_t>(apart.size());
        apart.push_back(1);
      }
    }
    Dims order = iota_dims(apart.size());
    std::swap(order[at(from_place)], order[at(to_place)]);
    const Tiling seen = reshape_extents(result, apart, false);
    std::swap(extents[at(source)], extents[at(target)]);
    result = reshape_extents(transpose(seen, order), extents, from.is_partial());
  }
  return result;
}

std::optional<SplitTilings> split_to_match(const Shape& shape, const Tiling& from,
                                           const Tiling& to) {
  if (from.tiles().size() != to.tiles().size() || from.replicas() != to.replicas()) return {};
  Dims ones;   // dimensions that one side does not split
  Dims twice;  // dimensions that both split, one more finely
  for (std::size_t i = 0; i < from.tiles().size(); ++i) {
    const auto [least, most] = std::minmax(from.tiles()[i], to.tiles()[i]);
    if (least == most) continue;
    if (least == 1) {
      ones.push_back(static_cast<std::int64_t>(i));
    } else if (most % least == 0 && ceil_div(shape[i], least) * least % most == 0) {
      twice.push_back(static_cast<std::int64_t>(i));
    }
  }
  for (const std::int64_t i : twice) {
    for (const std::int64_t j : ones) {
      if (from.tiles(i) * from.tiles(j) != to.tiles(i) * to.tiles(j)) continue;
      return split_both(from, to, i, std::min(from.tiles(i), to.tiles(i)));
    }
  }
  for (const std::int64_t i : twice) {
    if (from.tiles(i) > to.tiles(i)) return split_both(from, to, i, to.tiles(i));
  }
  return {};
}

std::optional<Tiling> replicate_to_match(const Tiling& from, const Tiling& to) {
  if (!to.is_partial()) return {};
  for (std::size_t i = 0; i < from.tiles().size(); ++i) {
    if (from.tiles()[i] == 1 || from.tiles()[i] * from.replicas() != to.replicas()) continue;
    return replicate_dims(from, {static_cast<std::int64_t>(i)});
  }
  return {};
}

std::optional<Tiling> spread_to_match(const Tiling& from, const Tiling& to) {
  if (!from.is_partial() || to.is_partial()) return {};
  for (std::size_t i = 0; i < to.tiles().size(); ++i) {
    if (from.tiles()[i] == to.tiles()[i] || from.tiles()[i] != 1 ||
        to.tiles()[i] % from.replicas() != 0) {
      continue;
    }
    Dims order = iota_dims(from.tiles().size() + 1);
    std::swap(order[i], order.back());
    return transpose(from, order);
  }
  return {};
}

}  // namespace shardsim::spmd
