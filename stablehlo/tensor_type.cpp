#include "stablehlo/tensor_type.hpp"

#include <fmt/format.h>

#include <array>
#include <functional>
#include <numeric>
#include <utility>

namespace shardsim::stablehlo {
namespace {

constexpr std::int64_t most_elements = std::int64_t{1} << 53;

// MLIR's names beside those of base/dtype.hpp.
std::optional<DType> dtype_of(std::string_view element) {
  constexpr std::array<std::pair<std::string_view, DType>, 30> names{{
      {"f64", DType::f64},
      {"f32", DType::f32},
      {"bf16", DType::bf16},
      {"f16", DType::f16},
      {"i1", DType::boolean},
      {"i4", DType::i4},
      {"si4", DType::i4},
      {"i8", DType::i8},
      {"si8", DType::i8},
      {"i16", DType::i16},
      {"si16", DType::i16},
      {"i32", DType::i32},
      {"si32", DType::i32},
      {"i64", DType::i64},
      {"si64", DType::i64},
      {"ui4", DType::u4},
      {"ui8", DType::u8},
      {"ui16", DType::u16},
      {"ui32", DType::u32},
      {"ui64", DType::u64},
      {"complex<f32>", DType::c64},
      {"complex<f64>", DType::c128},
      {"f8E4M3FN", DType::f8_e4m3},
      {"f8E5M2", DType::f8_e5m2},
      {"f8E8M0FNU", DType::f8_e8m0},
      {"f8E4M3FNUZ", DType::f8_e4m3fnuz},
      {"f8E5M2FNUZ", DType::f8_e5m2fnuz},
      {"f6E2M3FN", DType::f6_e2m3},
      {"f6E3M2FN", DType::f6_e3m2},
      {"f4E2M1FN", DType::f4_e2m1},
  }};
  for (const auto& [name, dtype] : names) {
    if (name == element) return dtype;
  }
  return std::nullopt;
}

// Element types may have parameters: complex<f32>, !quant.uniform<i8:f32, 0.1>.
std::string parse_element(Scanner& scanner) {
  std::string element = scanner.accept("!") ? "!" : "";
  element += scanner.word("an element type");
  if (scanner.next_is("<")) element += fmt::format("<{}>", scanner.angle_body());
  return element;
}

// The body of tensor<...>. A dimension and the "x" after it are one run of characters, so that
// "8x16xf32" has to be taken apart by hand.
TensorType parse_tensor(Scanner& scanner) {
  TensorType type;
  std::int64_t elements = 1;
  while (scanner.peek() == '?' || scanner.peek() == '*' || scanner.next_is_digit()) {
    if (!scanner.next_is_digit()) {
      scanner.fail("dynamic dimension: export with static shapes");
    }
    const std::int64_t size = scanner.integer("a dimension");
    if (size != 0 && elements > most_elements / size) scanner.fail("tensor with too many elements");
    elements *= size;
    type.dims.push_back(size);
    scanner.expect("x");
  }
  type.element = parse_element(scanner);
  type.dtype = dtype_of(type.element);
  return type;
}

}  // namespace

std::int64_t TensorType::elements() const {
  return std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
}

std::string text_of(const TensorType& type) {
  if (!type.is_tensor) return type.element;
  std::string text = "tensor<";
  for (const std::int64_t size : type.dims) text += fmt::format("{}x", size);
  text += type.element;
  if (!type.encoding.empty()) text += ", " + type.encoding;
  return text + ">";
}

TensorType parse_type(Scanner& scanner) {
  if (scanner.accept_word("tensor")) {
    const int line = scanner.line();
    const std::string_view body = scanner.angle_body();
    Scanner inner(body, scanner.file(), line);
    TensorType type = parse_tensor(inner);
    if (inner.accept(",")) {
      while (!inner.at_end()) {
        type.encoding += inner.accept("#") ? "#" : "";
        type.encoding += inner.word("an encoding");
        if (inner.next_is("<")) type.encoding += fmt::format("<{}>", inner.angle_body());
      }
    }
    if (!inner.at_end()) inner.fail_expected("\">\"");
    return type;
  }
  TensorType type;
  type.is_tensor = false;
  if (scanner.peek() != '!' && scanner.try_word().empty()) scanner.fail_expected("a type");
  if (scanner.next_is("!")) {
    type.element = parse_element(scanner);
  } else {
    scanner.fail("a value that is neither tensor nor token");
  }
  return type;
}

}  // namespace shardsim::stablehlo
