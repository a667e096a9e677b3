#include "spmd/propagation/constants.hpp"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "spmd/propagation/op_kinds.hpp"

namespace shardsim::spmd {

using stablehlo::Attribute;

namespace {

// MLIR prints floats in hexadecimal when they are not finite, or their decimals do not read back.
std::optional<double> number_of_bits(const std::string& text, const std::string& element) {
  std::uint64_t bits = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + 2, end, bits, 16);
  if (error != std::errc() || rest != end) return std::nullopt;
  double number = 0;
  if (element == "f64") {
    number = std::bit_cast<double>(bits);
  } else if (element == "f32") {
    number = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  } else if (element == "bf16") {
    number = std::bit_cast<float>(static_cast<std::uint32_t>(bits << 16U));
  } else {
    return std::nullopt;
  }
  return std::isfinite(number) ? std::optional(number) : std::nullopt;
}

}  // namespace

std::optional<std::string> splat_text(const stablehlo::Op& op) {
  if (!is_constant(op)) return std::nullopt;
  const Attribute* value = find(op.attributes, "value");
  if (value == nullptr || value->kind != Attribute::Kind::elements || value->text.empty() ||
      value->text.front() == '[' || value->text.front() == '"') {
    return std::nullopt;
  }
  return value->text;
}

std::optional<double> splat_number(const stablehlo::Op& op, const std::string& element) {
  const std::optional<std::string> text = splat_text(op);
  if (!text) return std::nullopt;
  if (*text == "true") return 1;
  if (*text == "false") return 0;
  if (text->starts_with("0x")) return number_of_bits(*text, element);
  double number = 0;
  const char* end = text->data() + text->size();
  const auto [rest, error] = std::from_chars(text->data(), end, number);
  if (error != std::errc() || rest != end) return std::nullopt;
  return number;
}

stablehlo::Op constant_op(std::string text) {
  stablehlo::Op op;
  op.name = "stablehlo.constant";
  Attribute value;
  value.kind = Attribute::Kind::elements;
  value.text = std::move(text);
  op.attributes.push_back({"value", std::move(value)});
  return op;
}

stablehlo::NamedAttribute integers_attribute(std::string name,
                                             const std::vector<std::int64_t>& values) {
  Attribute list;
  list.kind = Attribute::Kind::list;
  for (const std::int64_t value : values) {
    Attribute item;
    item.kind = Attribute::Kind::integer;
    item.integer = value;
    item.text = std::to_string(value);
    list.items.push_back(std::move(item));
  }
  return {std::move(name), std::move(list)};
}

}  // namespace shardsim::spmd
