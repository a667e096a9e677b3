#include "base/dtype.hpp"

#include <array>
#include <utility>

namespace shardsim {
namespace {

struct DTypeRow {
  DType dtype;
  std::int64_t bytes;
  std::array<std::string_view, 3> names;  // the first is ours
};

constexpr std::array<DTypeRow, 9> rows{{
    {DType::f64, 8, {"fp64", "float64", "f64"}},
    {DType::f32, 4, {"fp32", "float32", "f32"}},
    {DType::bf16, 2, {"bf16", "bfloat16", "bf16"}},
    {DType::f16, 2, {"fp16", "float16", "f16"}},
    {DType::f8, 1, {"fp8", "float8", "f8"}},
    {DType::i64, 8, {"int64", "s64", "i64"}},
    {DType::i32, 4, {"int32", "s32", "i32"}},
    {DType::i8, 1, {"int8", "s8", "i8"}},
    {DType::boolean, 1, {"bool", "pred", "i1"}},
}};

}  // namespace

Bytes size_of(DType dtype) { return Bytes(rows.at(static_cast<std::size_t>(dtype)).bytes); }

std::string_view name_of(DType dtype) { return rows.at(static_cast<std::size_t>(dtype)).names[0]; }

std::optional<DType> parse_dtype(std::string_view text) {
  for (const DTypeRow& row : rows) {
    for (std::string_view name : row.names) {
      if (name == text) return row.dtype;
    }
  }
  return std::nullopt;
}

}  // namespace shardsim
