#include "spmd/tiling/tiling_reshape.hpp"

#include <algorithm>
#include <numeric>

#include "base/index.hpp"

namespace shardsim::spmd {
namespace {

// What is left of one dimension of the source.
struct Piece {
  std::int64_t size;
  std::int64_t tiles;
  std::int64_t dim;
};

// Walks over both shapes from the major end. What is left of a dimension of either side goes back
// to the front.
class ReshapeWalk {
 public:
  ReshapeWalk(const Shape& from, const Shape& to, const Shape& tiles)
      : wanted_(to.rbegin(), to.rend()) {
    for (std::size_t i = from.size(); i-- > 0;) {
      pieces_.push_back({from[i], tiles[i], static_cast<std::int64_t>(i)});
    }
  }

  // False: a tile of unequal size stands in the way.
  [[nodiscard]] bool run() {
    while (!pieces_.empty() && !wanted_.empty() && anything_split()) {
      pass_whole_dims();
      if (pieces_.empty() || wanted_.empty()) break;
      switch (step()) {
        case Step::go_on:
          break;
        case Step::stop:
          return true;
        case Step::fail:
          return false;
      }
    }
    return true;
  }

  [[nodiscard]] const Shape& tiles() const { return tiles_; }
  [[nodiscard]] const Dims& lost_dims() const { return lost_; }

 private:
  enum class Step { go_on, stop, fail };

  [[nodiscard]] bool anything_split() const {
    return std::any_of(pieces_.begin(), pieces_.end(),
                       [](const Piece& piece) { return piece.tiles != 1; });
  }

  // Into the next dimension of the result, or into the one that has a part of its size already.
  void give(std::int64_t tiles) {
    if (unfinished_) {
      tiles_.back() *= tiles;
    } else {
      tiles_.push_back(tiles);
    }
    unfinished_ = false;
  }

  void pass_whole_dims() {
    std::int64_t whole = 1;
    std::int64_t dim = 0;
    while (!pieces_.empty() && pieces_.back().tiles == 1) {
      whole *= pieces_.back().size;
      dim = pieces_.back().dim;
      pieces_.pop_back();
    }
    while (!wanted_.empty() && wanted_.back() > 1 && whole % wanted_.back() == 0) {
      whole /= wanted_.back();
      wanted_.pop_back();
      give(1);
    }
    if (whole != 1) pieces_.push_back({whole, 1, dim});
  }

  Step step() {
    const Piece piece = pieces_.back();
    pieces_.pop_back();
    const std::int64_t size = wanted_.back();
    wanted_.pop_back();
    if (piece.size == size) {
      // Behind the tiles that are there already, padding would come between elements.
      if (unfinished_ && piece.size % piece.tiles != 0) return Step::fail;
      give(piece.tiles);
      return Step::go_on;
    }
    if (size == 1) {
      give(1);
      pieces_.push_back(piece);
      return Step::go_on;
    }
    if (piece.size == 1) {
      wanted_.push_back(size);
      if (piece.tiles > 1) lost_.push_back(piece.dim);
      return Step::go_on;
    }
    if (piece.tiles == 1) return Step::stop;
    if (piece.size % piece.tiles != 0) return Step::fail;
    const std::int64_t shared = std::gcd(piece.tiles, size);
    if (shared == 1) return Step::stop;
    pieces_.push_back({piece.size / shared, piece.tiles / shared, piece.dim});
    wanted_.push_back(size / shared);
    give(shared);
    unfinished_ = true;
    return Step::go_on;
  }

  std::vector<Piece> pieces_;  // the next one last, as in `wanted_`
  Shape wanted_;
  Shape tiles_;
  Dims lost_;
  bool unfinished_ = false;
};

// All devices of each tile of a partial or full tiling, by the number of the tile.
std::vector<std::vector<int>> devices_by_tile(const Tiling& tiling) {
  std::vector<std::vector<int>> result(at(tiling.tile_count()));
  for (std::size_t i = 0; i < tiling.devices().size(); ++i) {
    result[i / at(tiling.replicas())].push_back(tiling.devices()[i]);
  }
  return result;
}

// Visits every index of an array of these extents, row by row.
void each_index(const Shape& extents, const std::function<void(const Dims&)>& visit) {
  Dims index(extents.size(), 0);
  for (std::int64_t count = product(extents); count > 0; --count) {
    visit(index);
    for (std::size_t i = extents.size(); i-- > 0;) {
      if (++index[i] < extents[i]) break;
      index[i] = 0;
    }
  }
}

// The number of the tile that holds `index` of a finer array.
std::size_t tile_at(const Shape& tiles, const Dims& index) {
  std::int64_t place = 0;
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    place = place * tiles[i] + (tiles[i] == 1 ? 0 : index[i]);
  }
  return at(place);
}

}  // namespace

std::optional<Tiling> reshape_tiling(const Shape& from, const Shape& to, const Tiling& tiling) {
  if (tiling.is_replicated()) return tiling;
  ReshapeWalk walk(from, to, tiling.tiles());
  if (!walk.run()) return {};
  Shape tiles = walk.tiles();
  if (product(tiles) == 1) return {};
  tiles.resize(to.size(), 1);
  return Tiling::tiled(std::move(tiles), replicate_dims(tiling, walk.lost_dims()).devices());
}

Tiling reshape_tiling_in_parts(const Shape& from, const Shape& to, const Tiling& tiling) {
  if (tiling.is_replicated()) return tiling;
  Tiling result;
  std::size_t first = 0;
  const std::size_t rank = from.size();
  while (first < rank) {
    std::size_t next = first + 1;
    for (std::size_t last = rank; last > first; --last) {
      Shape tiles(rank, 1);
      std::copy(tiling.tiles().begin() + static_cast<std::ptrdiff_t>(first),
                tiling.tiles().begin() + static_cast<std::ptrdiff_t>(last),
                tiles.begin() + static_cast<std::ptrdiff_t>(first));
      if (product(tiles) == 1) continue;
      std::vector<int> numbers(at(product(tiles)));
      std::iota(numbers.begin(), numbers.end(), 0);
      const auto part = reshape_tiling(from, to, Tiling::tiled(tiles, std::move(numbers)));
      if (!part || part->is_replicated()) continue;
      // The run's dimensions come first, all others are replicas.
      Dims run;
      for (std::size_t i = first; i < last; ++i) run.push_back(static_cast<std::int64_t>(i));
      const Tiling of_run = replicate_all_but(tiling, run);
      const auto refined = refine_tiling(result, Tiling::tiled(part->tiles(), of_run.devices()),
                                         result.tile_count() + 1);
      if (!refined) continue;
      result = *refined;
      next = last;
      break;
    }
    first = next;
  }
  return result;
}

std::optional<std::int64_t> only_tiled_dim(const Tiling& tiling) {
  std::optional<std::int64_t> found;
  for (std::size_t i = 0; i < tiling.tiles().size(); ++i) {
    if (tiling.tiles()[i] == 1) continue;
    if (found) return {};
    found = static_cast<std::int64_t>(i);
  }
  return found;
}

std::optional<Tiling> refine_tiling(const Tiling& tiling, const Tiling& other, std::int64_t least) {
  if (other.is_replicated()) return {};
  if (tiling.is_replicated()) return other;
  if (!tiling.is_partial() || tiling.tiles().size() != other.tiles().size()) return {};
  Shape tiles = tiling.tiles();
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    if (tiles[i] == 1) tiles[i] = other.tiles()[i];
    if (other.tiles()[i] != 1 && other.tiles()[i] != tiles[i]) return {};
  }
  const std::size_t count = at(product(tiles));
  if (other.devices().size() % count != 0 || static_cast<std::int64_t>(count) < least) return {};
  const auto mine = devices_by_tile(tiling);
  const auto theirs = devices_by_tile(other);
  const std::size_t replicas = other.devices().size() / count;
  std::vector<int> devices;
  bool compatible = true;
  each_index(tiles, [&](const Dims& index) {
    std::vector<int> a = mine[tile_at(tiling.tiles(), index)];
    std::vector<int> b = theirs[tile_at(other.tiles(), index)];
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    const std::size_t before = devices.size();
    std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(devices));
    compatible = compatible && devices.size() - before == replicas;
  });
  if (!compatible) return {};
  return Tiling::tiled(std::move(tiles), std::move(devices));
}

Tiling refined_if_possible(const Tiling& tiling, const Tiling& other) {
  return refine_tiling(tiling, other, tiling.tile_count() + 1).value_or(tiling);
}

Tiling common_tiling(const std::vector<Tiling>& tilings) {
  Tiling common = tilings.front();
  for (const Tiling& tiling : tilings) {
    if (tiling == common) continue;
    const auto refined = refine_tiling(common, tiling, common.tile_count());
    if (!refined) return tilings.front();
    common = *refined;
  }
  return common;
}

Tiling move_tiles(const Tiling& tiling, std::int64_t source, std::int64_t target) {
  // A dimension of one tile behind `target` changes places with `source` and joins `target`.
  const Tiling apart = insert_dim(tiling, target + 1);
  Dims order = iota_dims(apart.tiles().size());
  std::swap(order[at(target + 1)], order[at(source < target ? source : source + 1)]);
  return merge_dim(transpose(apart, order), target);
}

std::optional<std::int64_t> dim_to_move_tiles_to(
    const Shape& shape, const Tiling& tiling, std::int64_t source,
    const std::function<bool(std::int64_t)>& may_take) {
  if (shape.size() < 2 || shape[at(source)] == 1 || tiling.tiles(source) == 1) return {};
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const auto dim = static_cast<std::int64_t>(i);
    if (dim == source || !may_take(dim)) continue;
    if (shape[i] % (tiling.tiles(source) * tiling.tiles(dim)) == 0) return dim;
  }
  return {};
}

Tiling reverse_tiling(const Tiling& tiling, const Dims& dims) {
  if (tiling.is_replicated()) return tiling;
  const Shape extents = tiling.extents();
  std::vector<int> devices;
  tiling.each([&](const Dims& index, int) {
    Dims mirrored = index;
    for (const std::int64_t dim : dims) {
      mirrored[at(dim)] = extents[at(dim)] - 1 - mirrored[at(dim)];
    }
    devices.push_back(tiling.device_at(mirrored));
  });
  return Tiling::tiled(tiling.tiles(), std::move(devices));
}

Tiling tiling_along(const Tiling& tiling, const Dims& from, const Dims& to, std::size_t rank) {
  if (tiling.is_replicated()) return tiling;
  Shape tiles(rank, 1);
  for (std::size_t i = 0; i < from.size(); ++i) tiles[at(to[i])] = tiling.tiles(from[i]);
  std::vector<std::vector<int>> by_tile(at(product(tiles)));
  tiling.each([&](const Dims& index, int device) {
    Dims moved(rank, 0);
    for (std::size_t i = 0; i < from.size(); ++i) moved[at(to[i])] = index[at(from[i])];
    by_tile[tile_at(tiles, moved)].push_back(device);
  });
  std::vector<int> devices;
  for (const auto& of_tile : by_tile) {
    devices.insert(devices.end(), of_tile.begin(), of_tile.end());
  }
  return Tiling::tiled(std::move(tiles), std::move(devices));
}

Tiling align_dims(const Tiling& tiling, const Dims& dims, const Tiling& reference,
                  const Dims& reference_dims) {
  return ungroup(align_groups(group_by(tiling, dims), group_by(reference, reference_dims)));
}

}  // namespace shardsim::spmd
