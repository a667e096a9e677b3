// Types of values: ranked tensors of static shape, and what is no tensor (tokens, tuples).
//
//   tensor<16x128xbf16>   dims {16, 128}, element "bf16", dtype bf16, elements() 2048
//   tensor<f32>           a scalar: no dims
//   !stablehlo.token      is_tensor false, element "!stablehlo.token"
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.hpp"
#include "stablehlo/scanner.hpp"

namespace shardsim::stablehlo {

struct TensorType {
  bool is_tensor = true;
  std::vector<std::int64_t> dims;
  std::string element;         // as written: "f8E4M3FN"; of no tensor the whole type
  std::optional<DType> dtype;  // empty for element types that shardsim does not know
  std::string encoding;        // tensor<4xf32, ENCODING>; usually empty

  [[nodiscard]] std::size_t rank() const { return dims.size(); }
  // At most 2^53: the parser refuses larger tensors.
  [[nodiscard]] std::int64_t elements() const;
  friend bool operator==(const TensorType&, const TensorType&) = default;
};

[[nodiscard]] std::string text_of(const TensorType& type);
// Throws InputError: unknown syntax, dynamic dimensions, more than 2^53 elements.
[[nodiscard]] TensorType parse_type(Scanner& scanner);

}  // namespace shardsim::stablehlo
