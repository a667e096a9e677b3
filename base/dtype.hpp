// Element types of tensors, under the names that JAX and PyTorch users write.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/units.hpp"

namespace shardsim {

enum class DType : std::uint8_t { f64, f32, bf16, f16, f8, i64, i32, i8, boolean };

[[nodiscard]] Bytes size_of(DType dtype);
[[nodiscard]] std::string_view name_of(DType dtype);  // "bf16", "fp32", "int32", ...
// Accepts the names above and their spellings in JAX and PyTorch ("bfloat16", "float32", "f32").
[[nodiscard]] std::optional<DType> parse_dtype(std::string_view text);

}  // namespace shardsim
