#include "stablehlo/op_view.hpp"

#include <fmt/format.h>

#include "base/index.hpp"

namespace shardsim::stablehlo {

double elements(const Shape& shape) {
  double count = 1;
  for (const std::int64_t size : shape) count *= static_cast<double>(size);
  return count;
}

const Shape& OpView::operand(std::size_t index) const {
  if (index >= op_.operands.size()) fail(fmt::format("operand {} is missing", index));
  return function_.type_of(op_.operands[index]).dims;
}

const Shape& OpView::result(std::size_t index) const {
  if (index >= op_.results.size()) fail(fmt::format("result {} is missing", index));
  return function_.type_of(op_.results[index]).dims;
}

std::int64_t OpView::size(const Shape& shape, std::int64_t dimension) const {
  if (dimension < 0 || static_cast<std::size_t>(dimension) >= shape.size()) {
    fail(fmt::format("dimension {} of a tensor of rank {}", dimension, shape.size()));
  }
  return shape[at(dimension)];
}

const Attribute* OpView::attribute(std::initializer_list<std::string_view> names) const {
  for (const std::string_view name : names) {
    if (const Attribute* found = find(op_.attributes, name)) return found;
  }
  return nullptr;
}

std::vector<std::int64_t> OpView::integers(std::initializer_list<std::string_view> names) const {
  const Attribute* found = attribute(names);
  if (found == nullptr) fail(fmt::format("attribute \"{}\" is missing", *names.begin()));
  return integers_of(*found, module_.file, op_.line);
}

std::vector<std::int64_t> OpView::integers_or_none(
    std::initializer_list<std::string_view> names) const {
  const Attribute* found = attribute(names);
  return found == nullptr ? std::vector<std::int64_t>{}
                          : integers_of(*found, module_.file, op_.line);
}

std::int64_t OpView::integer(std::initializer_list<std::string_view> names,
                             std::int64_t otherwise) const {
  const Attribute* found = attribute(names);
  if (found == nullptr) return otherwise;
  const std::vector<std::int64_t> values = integers_of(*found, module_.file, op_.line);
  if (values.size() != 1) fail(fmt::format("attribute \"{}\" is no integer", *names.begin()));
  return values.front();
}

AttributeList OpView::fields(std::initializer_list<std::string_view> names) const {
  const Attribute* found = attribute(names);
  if (found == nullptr) fail(fmt::format("attribute \"{}\" is missing", *names.begin()));
  return stablehlo::fields(*found, module_.file, op_.line);
}

std::vector<std::int64_t> OpView::integers(const AttributeList& fields,
                                           std::string_view name) const {
  const Attribute* found = find(fields, name);
  return found == nullptr ? std::vector<std::int64_t>{}
                          : integers_of(*found, module_.file, op_.line);
}

void OpView::expect_counts(std::size_t operands, std::size_t results) const {
  if (op_.operands.size() == operands && op_.results.size() == results) return;
  fail(fmt::format("expected {} operands and {} results, found {} and {}", operands, results,
                   op_.operands.size(), op_.results.size()));
}

void OpView::fail(std::string_view message) const {
  throw InputError(module_.place_of(op_), fmt::format("{}: {}", op_.name, message));
}

std::string comparison_direction(const Op& compare) {
  if (const Attribute* words = find(compare.attributes, "words")) return words->items.front().text;
  const Attribute* attribute = find(compare.attributes, "comparison_direction");
  if (attribute == nullptr) return "";
  return attribute->text.substr(attribute->text.rfind(' ') + 1);
}

}  // namespace shardsim::stablehlo
