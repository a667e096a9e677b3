// Element types of tensors, under the names that users of JAX, PyTorch, safetensors and HLO write.
//
//   parse_dtype("bfloat16") == parse_dtype("BF16") == DType::bf16       name_of: "bf16"
//   parse_dtype("float8_e4m3fn") == parse_dtype("F8_E4M3") == DType::f8_e4m3
//   storage_bytes(3, DType::i4) == Bytes(2)                             two to a byte
//
// f8 is an 8-bit float of a format that does not matter, as a precision for matmuls is given.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/units.hpp"

namespace shardsim {

enum class DType : std::uint8_t {
  f64,
  f32,
  bf16,
  f16,
  f8,
  i64,
  i32,
  i8,
  boolean,
  f8_e4m3,
  f8_e5m2,
  f8_e8m0,  // a power of two: scales of the OCP microscaling formats
  f8_e4m3fnuz,
  f8_e5m2fnuz,
  f6_e2m3,
  f6_e3m2,
  f4_e2m1,
  i16,
  i4,
  u64,
  u32,
  u16,
  u8,
  u4,
  c64,
  c128
};

[[nodiscard]] int bits_of(DType dtype);
// Of one element on its own: one of less than a byte takes a whole one.
[[nodiscard]] Bytes size_of(DType dtype);
// Of an array: elements of less than a byte lie packed, as safetensors and XLA store them. Asserts
// at most 2^53 elements.
[[nodiscard]] Bytes storage_bytes(std::int64_t elements, DType dtype);
// As what libraries write a product of such operands: bf16 of floats of 8 bits and fewer, else the
// same.
[[nodiscard]] DType type_of_product(DType operands);
[[nodiscard]] std::string_view name_of(DType dtype);  // "bf16", "fp32", "int32", ...
// Accepts the names above and the spellings of JAX and PyTorch ("bfloat16"), safetensors ("BF16")
// and HLO ("f32").
[[nodiscard]] std::optional<DType> parse_dtype(std::string_view text);

}  // namespace shardsim
