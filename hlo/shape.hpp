// The type of an HLO value: an array, or a tuple of types.
//
//   bf16[8,256]{1,0:T(8,128)(2,1)S(1)}    element type, dimensions, layout: dimensions minor to
//                                         major, tiles, memory space
//   (f32[4], (s32[], token[]))            a tuple
//
// Bytes in memory follow the layout, tiles included (base/tile.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/dtype.hpp"
#include "base/tile.hpp"
#include "hlo/cursor.hpp"

namespace shardsim {

struct HloLayout {
  std::vector<std::int64_t> minor_to_major;  // empty: row-major
  std::vector<std::vector<std::int64_t>> tiles;
  int element_bits = 0;  // 0: as the element type says
  int memory_space = 0;  // 0: main memory; TPU: 1 is VMEM, 2 flags, 4 and 5 others; GPU and TPU: 5
                         // is host memory
};
inline constexpr int host_memory_space = 5;

struct HloShape {
  bool is_tuple = false;
  std::vector<HloShape> elements;  // of a tuple
  std::optional<DType> dtype;      // of an array; nothing for token[] and opaque[]
  std::vector<std::int64_t> dims;
  HloLayout layout;

  [[nodiscard]] std::int64_t element_count() const;  // of an array
  [[nodiscard]] Bytes logical_bytes() const;         // without padding; of all arrays of a tuple
  [[nodiscard]] Bytes bytes() const;                 // in memory, padding included
};

// Throws InputError: no shape, an unknown element type, more than 32 TiB.
[[nodiscard]] HloShape parse_shape(std::string_view text, const HloSource& source);
// Arrays of a shape, tuples flattened in order.
[[nodiscard]] std::vector<const HloShape*> arrays_of(const HloShape& shape);

// "12" or "{0,1}" as numbers; throws InputError.
[[nodiscard]] std::int64_t parse_integer(std::string_view text, const HloSource& source);
[[nodiscard]] std::vector<std::int64_t> parse_integers(std::string_view list,
                                                       const HloSource& source);

}  // namespace shardsim
