// What one dimension of an operand needs so that every device has the elements that its tile of a
// windowed result reads; the arithmetic of windowed.cpp.
//
//   16 elements in 4 tiles, slice [8, 16): 8 results, 2 each
//     low -8: tile i needs [8 + 2i, 10 + 2i): start {-left...} on the padded dimension 0, 2, 4, 6
//
// Tiles without any result or useful input may be left out of the exchange: those at the end, and
// those between the tiles with results and the tiles with input.
#pragma once

#include <optional>

#include "spmd/ops/halo_exchange.hpp"
#include "spmd/ops/windowed.hpp"

namespace shardsim::spmd {

struct WindowPlan {
  bool is_exchanged = false;  // otherwise tiles stay as they are, or all is in one
  std::int64_t tiles = 1;     // that take part
  std::int64_t left = 0;      // padding before the first element
  std::int64_t padded_size = 0;
  std::int64_t tile_size = 0;  // afterwards
  PerTile start;               // of each tile, on the padded dimension
  PerTile limit;
  PerTile ordinal;       // number of a tile among those that take part
  PerTile result_start;  // empty: 0
  // Before the exchange: tiles are cut to [cut_start, cut_limit), and masked when `mask_first`.
  std::int64_t input_tile = 0;  // size after that
  std::int64_t cut_start = 0;
  std::int64_t cut_limit = 0;
  std::int64_t exchanged_size = 0;  // of the dimension that is exchanged
  bool mask_first = false;
  std::int64_t skip_from = 0;  // tiles left out in the middle
  std::int64_t skip_count = 0;
  WindowDim window;  // what is left to do locally
};

[[nodiscard]] bool is_trivial(const WindowDim& dim);
// `size`: of the whole dimension; `local`: of a tile now; `tiles`: of the target. Nothing: this
// cannot be done tile by tile.
[[nodiscard]] std::optional<WindowPlan> plan_window(const WindowDim& dim, std::int64_t size,
                                                    std::int64_t local, std::int64_t tiles);

}  // namespace shardsim::spmd
