#include "spmd/ops/windowed_plan.hpp"

#include <algorithm>

#include "base/index.hpp"

namespace shardsim::spmd {
namespace {

struct Extent {
  std::int64_t dilated_window = 1;
  std::int64_t full = 0;  // dilated and padded
  std::int64_t windows = 0;
  std::int64_t windows_per_tile = 0;
};

Extent extent_of(const WindowDim& dim, std::int64_t size, std::int64_t tiles) {
  Extent result;
  result.dilated_window = 1 + (dim.size - 1) * dim.window_dilation;
  result.full = 1 + (size - 1) * dim.base_dilation + dim.high + dim.low;
  result.windows = (result.full - result.dilated_window) / dim.stride + 1;
  result.windows_per_tile = ceil_div(result.windows, tiles);
  return result;
}

bool is_undilated(const WindowDim& dim) {
  return dim.window_dilation == 1 && dim.base_dilation == 1;
}

// Tiles at the end that hold nothing of use. False: one tile is left, nothing is exchanged.
bool leave_out_last_tiles(const WindowDim& dim, const Extent& extent, std::int64_t size,
                          WindowPlan& plan) {
  const std::int64_t useful = ceil_div(size + dim.high, plan.input_tile);
  if (useful >= plan.tiles) return true;
  plan.tiles = std::max(useful, extent.windows);
  if (plan.tiles == 1) {
    plan.window.high = size + dim.high - plan.input_tile;
    return false;
  }
  plan.exchanged_size = plan.input_tile * plan.tiles;
  if (plan.exchanged_size > size && dim.high > 0) {
    plan.mask_first = true;
  } else if (dim.high < 0 && extent.full - dim.low < plan.input_tile) {
    plan.input_tile = extent.full - dim.low;
    plan.exchanged_size = plan.input_tile * plan.tiles;
    plan.cut_limit = plan.input_tile;
  }
  return true;
}

// Tiles between those with results, at the left, and those with input, far to the right.
void leave_out_middle_tiles(const Extent& extent, WindowPlan& plan) {
  const std::int64_t empty = -plan.left / plan.input_tile - extent.windows;
  if (empty <= 0) return;
  plan.tiles -= empty;
  plan.skip_from = extent.windows;
  plan.skip_count = empty;
  plan.left += empty * plan.input_tile;
  plan.exchanged_size = plan.input_tile * plan.tiles;
  for (std::int64_t& ordinal : plan.ordinal) {
    if (ordinal >= extent.windows) ordinal -= extent.windows;
  }
  const std::int64_t unneeded = -plan.left - plan.input_tile * (plan.tiles - 1);
  if (unneeded <= 0) return;
  plan.input_tile -= unneeded;
  plan.left += unneeded * plan.tiles;
  plan.cut_start = unneeded;
  if (extent.full < plan.input_tile) {
    const std::int64_t behind = plan.input_tile - extent.full;
    plan.cut_limit -= behind;
    plan.left += behind * (plan.tiles - 1);
    plan.input_tile = extent.full;
  }
  plan.exchanged_size = plan.input_tile * plan.tiles;
}

// Of a dilated operand every tile has its first element at another place between the holes: what
// is left of the padding on each device, and where its results begin. False: tiles differ in a way
// that no common padding makes up for.
bool plan_dilation(const WindowDim& dim, const Extent& extent, WindowPlan& plan) {
  if (dim.base_dilation == 1) return true;
  const std::int64_t step = dim.stride * extent.windows_per_tile;
  const auto first_element = [&](std::int64_t tile) {
    return plan.start[at(tile)] * dim.base_dilation + plan.window.low - step * tile;
  };
  std::int64_t most_low = first_element(0);
  bool all_same = true;
  for (std::int64_t tile = 0; tile < plan.tiles; ++tile) {
    const std::int64_t first = first_element(tile);
    const std::int64_t wanted = dim.stride * (extent.windows_per_tile - 1) + extent.dilated_window;
    const std::int64_t limit = first + (plan.tile_size - 1) * dim.base_dilation + 1;
    plan.window.high = std::max(plan.window.high, wanted - limit);
    all_same = all_same && first == plan.window.low;
    most_low = std::max(most_low, first);
  }
  if (dim.stride != 1) return step % dim.base_dilation == 0;
  if (!all_same) {
    for (std::size_t tile = 0; tile < plan.start.size(); ++tile) {
      const auto number = static_cast<std::int64_t>(tile);
      plan.result_start.push_back(extent.windows_per_tile * number + most_low - plan.window.low -
                                  plan.start[tile] * dim.base_dilation);
    }
  }
  plan.window.low = most_low;
  return true;
}

WindowPlan unexchanged(const WindowDim& dim, std::int64_t size, std::int64_t local,
                       std::int64_t tiles) {
  WindowPlan plan;
  plan.window = dim;
  plan.tiles = tiles;
  plan.input_tile = local;
  plan.cut_limit = local;
  plan.exchanged_size = size;
  plan.tile_size = ceil_div(size, tiles);
  plan.padded_size = tiles == 1 ? size : plan.tile_size * tiles;
  plan.start = linear(at(tiles), plan.tile_size, 0);
  plan.ordinal = linear(at(tiles), 1, 0);
  return plan;
}

}  // namespace

bool is_trivial(const WindowDim& dim) { return dim == WindowDim{.reversed = dim.reversed}; }

std::optional<WindowPlan> plan_window(const WindowDim& dim, std::int64_t size, std::int64_t local,
                                      std::int64_t tiles) {
  WindowPlan plan = unexchanged(dim, size, local, tiles);
  if (tiles == 1 || is_trivial(dim)) return plan;
  const Extent extent = extent_of(dim, size, tiles);
  const bool has_idle_tiles = extent.windows < tiles && is_undilated(dim);
  if (has_idle_tiles && !leave_out_last_tiles(dim, extent, size, plan)) return plan;
  plan.is_exchanged = true;
  plan.left = dim.low / dim.base_dilation;
  plan.window.low = dim.low % dim.base_dilation;
  plan.window.high = 0;
  if (has_idle_tiles) leave_out_middle_tiles(extent, plan);
  if (extent.full < extent.dilated_window) return {};
  const std::int64_t step = dim.stride * extent.windows_per_tile;
  if (dim.stride != 1 && step % dim.base_dilation != 0) return {};
  const std::int64_t first = dim.base_dilation - 1 - plan.window.low;
  const std::int64_t dilated_tile =
      dim.stride * (extent.windows_per_tile - 1) + extent.dilated_window;
  plan.start = linear(at(tiles), step, first, dim.base_dilation);
  plan.limit = linear(at(tiles), step, first + dilated_tile, dim.base_dilation);
  plan.tile_size = max_in(plan.limit - plan.start, 0, plan.tiles);
  plan.padded_size = plan.limit[at(plan.tiles - 1)];
  if (!plan_dilation(dim, extent, plan)) return {};
  return plan;
}

}  // namespace shardsim::spmd
