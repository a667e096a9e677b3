#include "spmd/propagation/fold_constants.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <unordered_map>

#include "stablehlo/attribute.hpp"

namespace shardsim::spmd {
namespace {

using Unary = double (*)(double);
using Binary = double (*)(double, double);

const std::unordered_map<std::string_view, Unary>& unary_ops() {
  static const std::unordered_map<std::string_view, Unary> table{
      {"stablehlo.abs", [](double x) { return std::fabs(x); }},
      {"stablehlo.convert", [](double x) { return x; }},
      {"stablehlo.cosine", [](double x) { return std::cos(x); }},
      {"stablehlo.exponential", [](double x) { return std::exp(x); }},
      {"stablehlo.log", [](double x) { return std::log(x); }},
      {"stablehlo.negate", [](double x) { return -x; }},
      {"stablehlo.rsqrt", [](double x) { return 1 / std::sqrt(x); }},
      {"stablehlo.sine", [](double x) { return std::sin(x); }},
      {"stablehlo.sqrt", [](double x) { return std::sqrt(x); }},
      {"stablehlo.tanh", [](double x) { return std::tanh(x); }},
  };
  return table;
}

const std::unordered_map<std::string_view, Binary>& binary_ops() {
  static const std::unordered_map<std::string_view, Binary> table{
      {"stablehlo.add", [](double x, double y) { return x + y; }},
      {"stablehlo.divide", [](double x, double y) { return x / y; }},
      {"stablehlo.maximum", [](double x, double y) { return std::fmax(x, y); }},
      {"stablehlo.minimum", [](double x, double y) { return std::fmin(x, y); }},
      {"stablehlo.multiply", [](double x, double y) { return x * y; }},
      {"stablehlo.subtract", [](double x, double y) { return x - y; }},
  };
  return table;
}

// Rounded to bfloat16, ties to even.
float to_bf16(float value) {
  auto bits = std::bit_cast<std::uint32_t>(value);
  bits += 0x7FFFU + ((bits >> 16U) & 1U);
  return std::bit_cast<float>(bits & 0xFFFF0000U);
}

std::optional<std::string> text_of_number(double value, const std::string& element) {
  if (!std::isfinite(value)) return std::nullopt;
  if (element == "f64") return fmt::format("{}", value);
  if (element == "f32") return fmt::format("{}", static_cast<float>(value));
  if (element == "bf16") return fmt::format("{}", to_bf16(static_cast<float>(value)));
  if (element == "i1") return value != 0 ? "true" : "false";
  const bool integer = element.starts_with("i") || element.starts_with("ui");
  constexpr double exact = 9007199254740992;  // 2^53
  if (!integer || std::fabs(value) > exact) return std::nullopt;
  return fmt::format("{}", static_cast<std::int64_t>(std::trunc(value)));
}

std::optional<bool> compare(const stablehlo::Op& op, double x, double y) {
  const stablehlo::Attribute* words = find(op.attributes, "words");
  if (words == nullptr || words->items.empty()) return std::nullopt;
  const std::string& direction = words->items.front().text;
  if (direction == "EQ") return x == y;
  if (direction == "NE") return x != y;
  if (direction == "LT") return x < y;
  if (direction == "LE") return x <= y;
  if (direction == "GT") return x > y;
  if (direction == "GE") return x >= y;
  return std::nullopt;
}

}  // namespace

std::optional<std::string> fold(const stablehlo::Op& op, const std::vector<double>& operands,
                                const stablehlo::TensorType& result) {
  if (operands.size() == 1) {
    const auto found = unary_ops().find(op.name);
    if (found == unary_ops().end()) return std::nullopt;
    return text_of_number(found->second(operands[0]), result.element);
  }
  if (operands.size() != 2) return std::nullopt;
  if (op.name == "stablehlo.compare") {
    const std::optional<bool> holds = compare(op, operands[0], operands[1]);
    if (!holds) return std::nullopt;
    return *holds ? "true" : "false";
  }
  const auto found = binary_ops().find(op.name);
  if (found == binary_ops().end()) return std::nullopt;
  return text_of_number(found->second(operands[0], operands[1]), result.element);
}

}  // namespace shardsim::spmd
