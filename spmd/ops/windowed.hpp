// An operand as an op with a window needs it: every device has exactly what its tile of the result
// reads.
//
//   18 elements in 3 tiles, window of 3, stride 1, padding 1 on both sides: 18 results, 6 each;
//   every tile needs 8 elements: one from each neighbour, padding at both ends
//
// Slices, paddings and reversals are windows of one element. Source: openxla/xla
// xla/service/spmd/spmd_partitioner.cc (ReshardAsWindowedInput).
#pragma once

#include <optional>
#include <vector>

#include "spmd/sharded.hpp"
#include "stablehlo/window.hpp"

namespace shardsim::spmd {

using stablehlo::Window;
using stablehlo::WindowDim;

struct WindowedInput {
  ValueId value = -1;
  Window window;  // what is left to do on `value` alone: dimensions that were exchanged have none
  // Where in the result of the local op the tile begins; empty: at 0.
  std::vector<ValueId> result_starts;
};

enum class Masking { none, when_compact, always };

// `operand` for a result that lies as `target`, which is not replicated. Nothing where the op has
// to be done on the whole: dilations that differ from tile to tile, or a window larger than the
// padded dimension.
[[nodiscard]] std::optional<WindowedInput> reshard_for_window(const Sharded& operand,
                                                              const Window& window,
                                                              const Tiling& target, ValueId padding,
                                                              Masking masking);

// Slices: both steps, the exchange and what is left to do on each device. `shape` is that of the
// result.
struct SliceBounds {
  Shape starts;
  Shape limits;
  Shape strides;
};
[[nodiscard]] std::optional<Sharded> slice_tiles(const Sharded& operand, const SliceBounds& bounds,
                                                 const Tiling& target);

struct PaddingSizes {
  Shape low;
  Shape high;
  Shape interior;
};
// `is_zero`: the padding is known to be 0, which is what devices without a neighbour receive.
[[nodiscard]] std::optional<Sharded> pad_tiles(const Sharded& operand, const PaddingSizes& sizes,
                                               ValueId padding, bool is_zero, const Tiling& target);

}  // namespace shardsim::spmd
