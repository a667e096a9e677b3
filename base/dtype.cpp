#include "base/dtype.hpp"

#include <algorithm>
#include <array>
#include <cassert>

namespace shardsim {
namespace {

struct DTypeRow {
  DType dtype;
  int bits;
  std::array<std::string_view, 5> names;  // the first is ours
};

// In the order of the enumeration.
constexpr std::array<DTypeRow, 26> rows{{
    {DType::f64, 64, {"fp64", "float64", "f64", "F64"}},
    {DType::f32, 32, {"fp32", "float32", "f32", "F32"}},
    {DType::bf16, 16, {"bf16", "bfloat16", "BF16"}},
    {DType::f16, 16, {"fp16", "float16", "f16", "F16"}},
    {DType::f8, 8, {"fp8", "float8", "f8"}},
    {DType::i64, 64, {"int64", "s64", "i64", "I64"}},
    {DType::i32, 32, {"int32", "s32", "i32", "I32"}},
    {DType::i8, 8, {"int8", "s8", "i8", "I8"}},
    {DType::boolean, 8, {"bool", "pred", "i1", "BOOL"}},
    {DType::f8_e4m3, 8, {"fp8_e4m3", "float8_e4m3fn", "f8e4m3fn", "F8_E4M3", "f8_e4m3"}},
    {DType::f8_e5m2, 8, {"fp8_e5m2", "float8_e5m2", "f8e5m2", "F8_E5M2", "f8_e5m2"}},
    {DType::f8_e8m0, 8, {"fp8_e8m0", "float8_e8m0fnu", "f8e8m0fnu", "F8_E8M0"}},
    {DType::f8_e4m3fnuz, 8, {"fp8_e4m3fnuz", "float8_e4m3fnuz", "f8e4m3fnuz", "F8_E4M3FNUZ"}},
    {DType::f8_e5m2fnuz, 8, {"fp8_e5m2fnuz", "float8_e5m2fnuz", "f8e5m2fnuz", "F8_E5M2FNUZ"}},
    {DType::f6_e2m3, 6, {"fp6_e2m3", "float6_e2m3fn", "f6e2m3fn", "F6_E2M3"}},
    {DType::f6_e3m2, 6, {"fp6_e3m2", "float6_e3m2fn", "f6e3m2fn", "F6_E3M2"}},
    {DType::f4_e2m1, 4, {"fp4_e2m1", "float4_e2m1fn", "f4e2m1fn", "F4", "fp4"}},
    {DType::i16, 16, {"int16", "s16", "i16", "I16"}},
    {DType::i4, 4, {"int4", "s4", "i4"}},
    {DType::u64, 64, {"uint64", "u64", "U64"}},
    {DType::u32, 32, {"uint32", "u32", "U32"}},
    {DType::u16, 16, {"uint16", "u16", "U16"}},
    {DType::u8, 8, {"uint8", "u8", "ui8", "U8"}},
    {DType::u4, 4, {"uint4", "u4"}},
    {DType::c64, 64, {"complex64", "c64", "C64"}},
    {DType::c128, 128, {"complex128", "c128"}},
}};

constexpr bool in_order() {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].dtype != static_cast<DType>(i)) return false;
  }
  return true;
}
static_assert(in_order());

const DTypeRow& row_of(DType dtype) { return rows.at(static_cast<std::size_t>(dtype)); }

}  // namespace

int bits_of(DType dtype) { return row_of(dtype).bits; }

Bytes size_of(DType dtype) { return Bytes((bits_of(dtype) + 7) / 8); }

Bytes storage_bytes(std::int64_t elements, DType dtype) {
  assert(elements >= 0 && elements <= std::int64_t{1} << 53);
  return Bytes((elements * bits_of(dtype) + 7) / 8);
}

DType type_of_product(DType operands) {
  switch (operands) {
    case DType::f8:
    case DType::f8_e4m3:
    case DType::f8_e5m2:
    case DType::f8_e8m0:
    case DType::f8_e4m3fnuz:
    case DType::f8_e5m2fnuz:
    case DType::f6_e2m3:
    case DType::f6_e3m2:
    case DType::f4_e2m1:
      return DType::bf16;
    default:
      return operands;
  }
}

std::string_view name_of(DType dtype) { return row_of(dtype).names[0]; }

std::optional<DType> parse_dtype(std::string_view text) {
  if (text.empty()) return std::nullopt;  // rows with fewer names end in empty ones
  for (const DTypeRow& row : rows) {
    if (std::find(row.names.begin(), row.names.end(), text) != row.names.end()) return row.dtype;
  }
  return std::nullopt;
}

}  // namespace shardsim
