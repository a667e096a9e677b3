// Arrays in memory in tiles, as XLA lays them out: padding, and the layout that a TPU gives an
// array of which nothing but shape and type is known.
//
// The most minor dimensions are padded to multiples of the first tile; a further tile lays out the
// elements of the tile before it (openxla/xla, docs/tiled_layout.md).
//
//   f32[196,196] in tiles (8,128)         200 x 256 elements
//   tpu_array_bytes({4096, 1}, f32)       laid out {0,1:T(1,128)}: 4096 x 4 bytes, not 2 MiB
//
// A TPU's tile has 128 columns; its rows follow from the width of an element and the size s of the
// second-minor dimension. Vectors are padded to the smallest unit that holds them:
//
//   bits   rows                                           unit of a vector, elements
//   32     1, 2, 4 for s <= 1, 2, 4; else 8               128, 256, 512, 1024
//   16     2, 4 for s <= 2, 4; else 8                     256, 512, 1024
//   8      32 if 32 divides s; else 4 for s <= 4; else 8  512, 1024
//   4      64 if 64 divides s; else 8                     1024
//
// (wider elements are kept as halves of 32 bits). The two minor dimensions are those that give the
// fewest bytes. The rule agrees with 4,225 of 4,225 arguments that the TPU compiler of libtpu
// 0.0.51 laid out on v4, v5e, v5p and v6e.
#pragma once

#include <cstdint>
#include <vector>

#include "base/dtype.hpp"

namespace shardsim {

inline constexpr std::int64_t combined_dimension = -1;  // a tile's "*": joined with the next minor
inline constexpr std::int64_t tpu_alignment = 512;  // bytes; every buffer of a TPU is rounded up

// Lays the minor dimensions of `physical` (major to minor) out in tiles: [.., a, b] with (s, t)
// becomes [.., a/s, b/t, s, t], rounded up.
void apply_tile(const std::vector<std::int64_t>& tile, std::vector<std::int64_t>& physical);

// Before rounding to tpu_alignment.
[[nodiscard]] Bytes tpu_array_bytes(const std::vector<std::int64_t>& dims, DType dtype);

}  // namespace shardsim
