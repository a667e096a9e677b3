#include "spmd/ops/halo_exchange.hpp"

#include <algorithm>
#include <string>

#include "base/index.hpp"

namespace shardsim::spmd {
namespace {

using DevicePairs = std::vector<std::pair<int, int>>;

const TensorType scalar_i32{true, {}, "i32", DType::i32, ""};

ValueId cut(Builder& builder, ValueId value, std::int64_t dim, std::int64_t start,
            std::int64_t limit) {
  const Shape& shape = builder.shape(value);
  if (start == 0 && limit == shape[at(dim)]) return value;
  Shape starts(shape.size(), 0);
  Shape limits = shape;
  starts[at(dim)] = start;
  limits[at(dim)] = limit;
  return builder.slice(value, starts, limits, Shape(shape.size(), 1));
}

// From every tile to the one `distance` tiles on (to the left when negative).
DevicePairs pairs_at_distance(const Tiling& tiling, std::int64_t dim, std::int64_t distance) {
  DevicePairs pairs;
  tiling.each([&](const Dims& index, int device) {
    Dims other = index;
    other[at(dim)] -= distance < 0 ? -distance : distance;
    if (other[at(dim)] < 0) return;
    const int neighbour = tiling.device_at(other);
    if (distance > 0) {
      pairs.emplace_back(neighbour, device);
    } else {
      pairs.emplace_back(device, neighbour);
    }
  });
  return pairs;
}

// What all tiles together need, relative to the first element of the own tile.
struct Reach {
  std::int64_t tile = 0;
  std::int64_t max_left = 0;
  std::int64_t max_right = 0;
  std::int64_t first = 0;
  std::int64_t limit = 0;
};

class Exchange {
 public:
  Exchange(Context& context, ValueId shard, const Halo& halo, const Reach& reach)
      : context_(context), builder_(context.builder()), shard_(shard), halo_(halo), reach_(reach) {}

  [[nodiscard]] ValueId run() {
    const std::int64_t tile = reach_.tile;
    for (std::int64_t i = ceil_div(std::max<std::int64_t>(reach_.max_left, 0), tile) - 1;
         i >= 0 && (-i - 1) * tile < reach_.limit; --i) {
      left_halo(i);
    }
    if (zeros_ > 0) pieces_.insert(pieces_.begin(), zeros());
    if (reach_.first < tile && reach_.limit > 0) {
      pieces_.push_back(cut(builder_, shard_, halo_.dim, std::max<std::int64_t>(0, reach_.first),
                            std::min(tile, reach_.limit)));
    }
    const std::int64_t skipped = std::min(std::max<std::int64_t>(reach_.first - tile, 0),
                                          std::max<std::int64_t>(reach_.max_right, 0)) /
                                 tile;
    zeros_ = 0;
    for (std::int64_t i = skipped; i < ceil_div(std::max<std::int64_t>(reach_.max_right, 0), tile);
         ++i) {
      right_halo(i);
    }
    if (zeros_ > 0) pieces_.push_back(zeros());
    return pieces_.size() == 1 ? pieces_.front() : builder_.concatenate(pieces_, halo_.dim);
  }

 private:
  // Of the neighbour i + 1 tiles to the left.
  void left_halo(std::int64_t i) {
    const std::int64_t tile = reach_.tile;
    const std::int64_t size = std::min(reach_.max_left - tile * i, tile);
    const std::int64_t unneeded = std::max<std::int64_t>(-i * tile - reach_.limit, 0);
    send(cut(builder_, shard_, halo_.dim, tile - size, tile - unneeded), i + 1);
  }

  void right_halo(std::int64_t i) {
    const std::int64_t tile = reach_.tile;
    const std::int64_t size = std::min(reach_.max_right - tile * i, tile);
    const std::int64_t unneeded = std::max<std::int64_t>(reach_.first - (i + 1) * tile, 0);
    send(cut(builder_, shard_, halo_.dim, unneeded, size), -(i + 1));
  }

  // Beyond the last tile there is nothing to receive.
  void send(ValueId edge, std::int64_t distance) {
    const DevicePairs pairs = pairs_at_distance(halo_.tiling, halo_.dim, distance);
    if (pairs.empty()) {
      zeros_ += builder_.shape(edge)[at(halo_.dim)];
    } else {
      pieces_.push_back(collective_permute(context_, edge, pairs));
    }
  }

  [[nodiscard]] ValueId zeros() {
    Shape shape = builder_.shape(shard_);
    shape[at(halo_.dim)] = zeros_;
    return builder_.broadcast_scalar(builder_.zero(builder_.type(shard_)), shape);
  }

  Context& context_;
  Builder& builder_;
  ValueId shard_;
  const Halo& halo_;
  const Reach& reach_;
  std::vector<ValueId> pieces_;
  std::int64_t zeros_ = 0;
};

bool all_equal(const PerTile& values) {
  return std::all_of(values.begin(), values.end(),
                     [&](std::int64_t value) { return value == values.front(); });
}

// The elements from start[tile] on of what exchange_halo() gave, padded where it falls short.
ValueId cut_by_tile(Context& context, ValueId exchanged, const Halo& halo, const HaloCut& cut_at) {
  Builder& builder = context.builder();
  const std::int64_t tiles = halo.tiling.tiles(halo.dim);
  const std::int64_t max_left = max_in(halo.left, 1, tiles);
  const std::int64_t before = std::max(max_left, cut_at.left_padding);
  const PerTile offset = linear(halo.left.size(), 0, before) - halo.left;
  const std::size_t rank = builder.shape(exchanged).size();
  Shape low(rank, 0);
  Shape high(rank, 0);
  low[at(halo.dim)] = std::max<std::int64_t>(0, before - std::max<std::int64_t>(0, max_left));
  high[at(halo.dim)] =
      std::max<std::int64_t>(0, max_in(offset, 0, tiles) + cut_at.tile_size -
                                    builder.shape(exchanged)[at(halo.dim)] - low[at(halo.dim)]);
  if (low[at(halo.dim)] > 0 || high[at(halo.dim)] > 0) {
    exchanged = builder.pad(exchanged, cut_at.padding, low, high, Shape(rank, 0));
  }
  Shape shape = builder.shape(exchanged);
  if (shape[at(halo.dim)] == cut_at.tile_size) return exchanged;
  if (all_equal(halo.left) && halo.left.front() == cut_at.left_padding) {
    return cut(builder, exchanged, halo.dim, 0, cut_at.tile_size);
  }
  shape[at(halo.dim)] = cut_at.tile_size;
  PerTile by_whole_tile;
  for (const std::int64_t ordinal : cut_at.ordinal) by_whole_tile.push_back(offset[at(ordinal)]);
  std::vector<ValueId> starts(rank, builder.constant("0", scalar_i32));
  starts[at(halo.dim)] = scalar_by_tile(context, cut_at.whole, halo.dim, by_whole_tile);
  return builder.dynamic_slice(exchanged, starts, shape);
}

ValueId mask_padding(Context& context, ValueId value, const Halo& halo, const HaloCut& cut_at) {
  Builder& builder = context.builder();
  const std::int64_t right_padding = cut_at.padded_size - cut_at.size - cut_at.left_padding;
  if (cut_at.left_padding <= 0 && right_padding <= 0) return value;
  const Shape shape = builder.shape(value);
  TensorType index = scalar_i32;
  index.dims = shape;
  PerTile by_whole_tile;
  for (const std::int64_t ordinal : cut_at.ordinal) {
    by_whole_tile.push_back(cut_at.start[at(ordinal)]);
  }
  const ValueId place =
      builder.binary("stablehlo.add", builder.iota(index, halo.dim),
                     builder.broadcast_scalar(
                         scalar_by_tile(context, cut_at.whole, halo.dim, by_whole_tile), shape));
  const auto compare = [&](std::string_view direction, std::int64_t bound) {
    return builder.compare(
        direction, place,
        builder.broadcast_scalar(builder.constant(std::to_string(bound), scalar_i32), shape));
  };
  ValueId valid = -1;
  if (cut_at.left_padding > 0) valid = compare("GE", cut_at.left_padding);
  if (right_padding > 0) {
    const ValueId before_end = compare("LT", cut_at.size + cut_at.left_padding);
    valid = valid < 0 ? before_end : builder.binary("stablehlo.and", valid, before_end);
  }
  return builder.select(valid, value, builder.broadcast_scalar(cut_at.padding, shape));
}

}  // namespace

PerTile linear(std::size_t count, std::int64_t multiplier, std::int64_t offset,
               std::int64_t divisor) {
  PerTile result;
  for (std::size_t i = 0; i < count; ++i) {
    result.push_back((static_cast<std::int64_t>(i) * multiplier + offset) / divisor);
  }
  return result;
}

PerTile operator-(const PerTile& a, const PerTile& b) {
  PerTile result = a;
  for (std::size_t i = 0; i < result.size(); ++i) result[i] -= b[i];
  return result;
}

std::int64_t max_in(const PerTile& values, std::int64_t first, std::int64_t limit) {
  return *std::max_element(values.begin() + first, values.begin() + limit);
}

ValueId scalar_by_tile(Context& context, const Tiling& tiling, std::int64_t dim,
                       const PerTile& values) {
  Builder& builder = context.builder();
  if (all_equal(values)) return builder.constant(std::to_string(values.front()), scalar_i32);
  std::vector<std::int64_t> by_device(at(context.devices()));
  tiling.each(
      [&](const Dims& index, int device) { by_device[at(device)] = values[at(index[at(dim)])]; });
  return scalar_by_device(context, by_device, scalar_i32);
}

std::optional<ValueId> exchange_halo(Context& context, ValueId shard, const Halo& halo) {
  const std::int64_t tile = context.builder().shape(shard)[at(halo.dim)];
  const std::int64_t tiles = halo.tiling.tiles(halo.dim);
  Reach reach;
  reach.tile = tile;
  reach.max_left = max_in(halo.left, 1, tiles);
  reach.max_right = max_in(halo.right, 0, tiles - 1);
  const bool from_afar = reach.max_left > tile || reach.max_right > tile;
  if (from_afar && reach.max_left + reach.max_right + tile >= tile * tiles) return {};
  reach.first = -max_in(halo.left, 0, tiles);
  reach.limit = tile + max_in(halo.right, 0, tiles);
  if (reach.first >= reach.limit) return {};
  return Exchange(context, shard, halo, reach).run();
}

std::optional<ValueId> exchange_halo_and_cut(Context& context, ValueId shard, const Halo& halo,
                                             const HaloCut& cut_at) {
  const std::int64_t tiles = halo.tiling.tiles(halo.dim);
  const std::int64_t tile = context.builder().shape(shard)[at(halo.dim)];
  if (cut_at.left_padding == halo.left.front()) {
    const std::int64_t most = std::max(max_in(halo.left, 0, tiles), max_in(halo.right, 0, tiles));
    std::int64_t largest = 0;
    for (std::int64_t i = 0; i < tiles; ++i) {
      const std::int64_t both = halo.left[at(i)] + halo.right[at(i)];
      largest = i == 0 ? both : std::max(largest, both);
    }
    largest += tile;
    if (largest == cut_at.tile_size && most > 2 * cut_at.tile_size) {
      if (2 * largest >= tiles * tile) return {};
      const bool masked = cut_at.mask || cut_at.mask_when_compact;
      return exchange_halo_compact(context, shard, halo, cut_at.size,
                                   masked ? std::optional(cut_at.padding) : std::nullopt);
    }
  }
  const auto exchanged = exchange_halo(context, shard, halo);
  if (!exchanged) return {};
  const ValueId result = cut_by_tile(context, *exchanged, halo, cut_at);
  return cut_at.mask ? mask_padding(context, result, halo, cut_at) : result;
}

}  // namespace shardsim::spmd
