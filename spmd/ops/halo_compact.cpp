#include <algorithm>
#include <string>

#include "base/index.hpp"
#include "spmd/ops/halo_exchange.hpp"

namespace shardsim::spmd {
namespace {

// A run of elements that a tile needs: of one source tile, or padding.
struct Piece {
  std::int64_t tile = 0;    // that needs it
  std::int64_t source = 0;  // tile that has it
  bool is_padding = false;
  std::int64_t start = 0;  // within the source
  std::int64_t limit = 0;
  std::int64_t offset = 0;  // within what `tile` needs
};

// One permute: an edge of every source, to at most one other tile each.
struct Permute {
  std::int64_t start = 0;
  std::int64_t limit = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> tiles;  // source, target
};

class CompactExchange {
 public:
  CompactExchange(Context& context, ValueId shard, const Halo& halo, std::int64_t size)
      : context_(context),
        builder_(context.builder()),
        shard_(shard),
        halo_(halo),
        size_(size),
        tile_(builder_.shape(shard)[at(halo.dim)]),
        tiles_(at(halo.tiling.tiles(halo.dim))) {}

  [[nodiscard]] ValueId run(std::optional<ValueId> padding) {
    list_pieces();
    align_padding();
    plan_permutes();
    const ValueId result = assemble(padding);
    return padding ? mask(result, *padding) : result;
  }

 private:
  [[nodiscard]] std::int64_t start_of(std::size_t tile) const {
    return static_cast<std::int64_t>(tile) * tile_ - halo_.left[tile];
  }

  void list_pieces() {
    pieces_.resize(tiles_);
    for (std::size_t tile = 0; tile < tiles_; ++tile) {
      const std::int64_t start = start_of(tile);
      const std::int64_t limit = (static_cast<std::int64_t>(tile) + 1) * tile_ + halo_.right[tile];
      width_ = std::max(width_, limit - start);
      for (std::int64_t next = start; next < limit;) {
        Piece piece;
        piece.tile = static_cast<std::int64_t>(tile);
        piece.offset = next - start;
        piece.start = (next % tile_ + tile_) % tile_;
        std::int64_t length = limit - next;
        if (next < 0 || next >= size_) {
          piece.is_padding = true;
          if (next < 0) length = std::min(length, -next);
        } else {
          length = std::min(tile_ - piece.start, length);
          piece.source = next / tile_;
        }
        piece.limit = piece.start + length;
        next += length;
        pieces_[tile].push_back(piece);
      }
    }
  }

  // The pieces of equal number in all tiles make one part of the result. Where some are data, those
  // that are padding are no longer than a tile.
  void align_padding() {
    std::vector<std::vector<Piece>> aligned(tiles_);
    std::vector<std::size_t> next(tiles_, 0);
    const auto is_done = [&](std::size_t tile) { return next[tile] >= pieces_[tile].size(); };
    for (;;) {
      bool all_padding = true;
      bool all_done = true;
      for (std::size_t tile = 0; tile < tiles_; ++tile) {
        if (is_done(tile)) continue;
        all_done = false;
        all_padding = all_padding && pieces_[tile][next[tile]].is_padding;
      }
      if (all_done) break;
      for (std::size_t tile = 0; tile < tiles_; ++tile) {
        if (is_done(tile)) continue;
        Piece& piece = pieces_[tile][next[tile]];
        aligned[tile].push_back(piece);
        if (!all_padding && piece.is_padding && piece.limit > tile_) {
          aligned[tile].back().limit = tile_;
          piece.start = 0;
          piece.limit -= tile_;
        } else {
          ++next[tile];
        }
      }
    }
    pieces_ = std::move(aligned);
  }

  // What each tile has to send, in the order of the places where it goes.
  [[nodiscard]] std::vector<std::vector<Piece>> pieces_to_send() const {
    std::vector<std::vector<Piece>> result(tiles_);
    std::size_t rounds = 0;
    for (const auto& of_tile : pieces_) rounds = std::max(rounds, of_tile.size());
    for (std::size_t round = 0; round < rounds; ++round) {
      for (const auto& of_tile : pieces_) {
        if (round >= of_tile.size()) continue;
        const Piece& piece = of_tile[round];
        if (!piece.is_padding && piece.source != piece.tile) {
          result[at(piece.source)].push_back(piece);
        }
      }
    }
    for (auto& of_source : result) {
      std::stable_sort(of_source.begin(), of_source.end(),
                       [](const Piece& a, const Piece& b) { return a.offset < b.offset; });
    }
    return result;
  }

  // Each permute takes the next piece of every source, but for those whose target has one already
  // and those at the other end of the tile, which would make all edges long.
  void plan_permutes() {
    const auto to_send = pieces_to_send();
    std::vector<std::size_t> next(tiles_, 0);
    for (;;) {
      Permute permute;
      permute.start = tile_;
      std::vector<bool> served(tiles_, false);
      for (std::size_t source = 0; source < tiles_; ++source) {
        if (next[source] >= to_send[source].size()) continue;
        const Piece& piece = to_send[source][next[source]];
        const bool before =
            permute.start > piece.limit && permute.limit == tile_ && piece.start == 0;
        const bool behind =
            permute.limit < piece.start && permute.start == 0 && piece.limit == tile_;
        if (!permute.tiles.empty() && (served[at(piece.tile)] || before || behind)) continue;
        served[at(piece.tile)] = true;
        permute.tiles.emplace_back(static_cast<std::int64_t>(source), piece.tile);
        permute.start = std::min(permute.start, piece.start);
        permute.limit = std::max(permute.limit, piece.limit);
        ++next[source];
      }
      if (permute.tiles.empty()) return;
      permutes_.push_back(permute);
    }
  }

  [[nodiscard]] ValueId send(const Permute& permute) {
    const Shape& shape = builder_.shape(shard_);
    ValueId edge = shard_;
    if (permute.start != 0 || permute.limit != tile_) {
      Shape starts(shape.size(), 0);
      Shape limits = shape;
      starts[at(halo_.dim)] = permute.start;
      limits[at(halo_.dim)] = permute.limit;
      edge = builder_.slice(shard_, starts, limits, Shape(shape.size(), 1));
    }
    std::vector<std::pair<int, int>> devices;
    for (const auto& [source, target] : permute.tiles) {
      halo_.tiling.each([&, from = source, to = target](const Dims& index, int device) {
        if (index[at(halo_.dim)] != from) return;
        Dims other = index;
        other[at(halo_.dim)] = to;
        devices.emplace_back(device, halo_.tiling.device_at(other));
      });
    }
    return collective_permute(context_, edge, devices);
  }

  // Every edge and the own tile are laid where they belong in a buffer with a tile of margin on
  // both sides; tiles that do not use it have it in the margin. Overlaps hold equal elements.
  [[nodiscard]] ValueId assemble(std::optional<ValueId> padding) {
    Shape shape = builder_.shape(shard_);
    const std::size_t rank = shape.size();
    shape[at(halo_.dim)] = width_ + 2 * tile_;
    const ValueId filler = padding ? *padding : builder_.zero(builder_.type(shard_));
    ValueId buffer = builder_.broadcast_scalar(filler, shape);
    const auto lay = [&](ValueId part, const PerTile& place) {
      const TensorType index{true, {}, "i32", DType::i32, ""};
      std::vector<ValueId> starts(rank, builder_.constant("0", index));
      starts[at(halo_.dim)] = scalar_by_tile(context_, halo_.tiling, halo_.dim, place);
      buffer = builder_.dynamic_update_slice(buffer, part, starts);
    };
    PerTile own(tiles_, 0);
    for (std::size_t tile = 0; tile < tiles_; ++tile) {
      const bool is_used = std::any_of(
          pieces_[tile].begin(), pieces_[tile].end(),
          [](const Piece& piece) { return !piece.is_padding && piece.source == piece.tile; });
      if (is_used) own[tile] = tile_ + halo_.left[tile];
    }
    lay(shard_, own);
    for (const Permute& permute : permutes_) {
      PerTile place(tiles_, 0);
      for (const auto& [source, target] : permute.tiles) {
        place[at(target)] = tile_ + source * tile_ + permute.start - start_of(at(target));
      }
      lay(send(permute), place);
    }
    Shape starts(rank, 0);
    starts[at(halo_.dim)] = tile_;
    shape[at(halo_.dim)] = tile_ + width_;
    return builder_.slice(buffer, starts, shape, Shape(rank, 1));
  }

  [[nodiscard]] ValueId mask(ValueId value, ValueId padding) {
    const Shape shape = builder_.shape(value);
    const TensorType scalar{true, {}, "i32", DType::i32, ""};
    PerTile starts;
    for (std::size_t tile = 0; tile < tiles_; ++tile) starts.push_back(start_of(tile));
    const ValueId start = scalar_by_tile(context_, halo_.tiling, halo_.dim, starts);
    const ValueId place = builder_.binary(
        "stablehlo.add", builder_.iota({true, shape, "i32", DType::i32, ""}, halo_.dim),
        builder_.broadcast_scalar(start, shape));
    const auto compare = [&](std::string_view direction, std::int64_t bound) {
      return builder_.compare(
          direction, place,
          builder_.broadcast_scalar(builder_.constant(std::to_string(bound), scalar), shape));
    };
    const ValueId valid = builder_.binary("stablehlo.and", compare("GE", 0), compare("LT", size_));
    return builder_.select(valid, value, builder_.broadcast_scalar(padding, shape));
  }

  Context& context_;
  Builder& builder_;
  ValueId shard_;
  const Halo& halo_;
  std::int64_t size_;
  std::int64_t tile_;
  std::size_t tiles_;
  std::int64_t width_ = 0;
  std::vector<std::vector<Piece>> pieces_;
  std::vector<Permute> permutes_;
};

}  // namespace

ValueId exchange_halo_compact(Context& context, ValueId shard, const Halo& halo, std::int64_t size,
                              std::optional<ValueId> padding) {
  return CompactExchange(context, shard, halo, size).run(padding);
}

}  // namespace shardsim::spmd
