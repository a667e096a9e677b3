// One op as the rules for it want to read it: shapes by position and attributes by name, where a
// missing or contradictory one is an InputError at the op's line.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "stablehlo/module.hpp"

namespace shardsim::stablehlo {

using Shape = std::vector<std::int64_t>;
[[nodiscard]] double elements(const Shape& shape);  // their number

class OpView {
 public:
  OpView(const Module& module, const Function& function, const Op& op)
      : module_(module), function_(function), op_(op) {}

  [[nodiscard]] const Module& module() const { return module_; }
  [[nodiscard]] const Function& function() const { return function_; }
  [[nodiscard]] const Op& op() const { return op_; }

  [[nodiscard]] const Shape& operand(std::size_t index) const;
  [[nodiscard]] const Shape& result(std::size_t index) const;
  // Fails unless dimension is one of the shape's.
  [[nodiscard]] std::int64_t size(const Shape& shape, std::int64_t dimension) const;

  // Printed and generic form name attributes differently: the first of `names` that is there.
  [[nodiscard]] const Attribute* attribute(std::initializer_list<std::string_view> names) const;
  [[nodiscard]] std::vector<std::int64_t> integers(
      std::initializer_list<std::string_view> names) const;  // fails when missing
  [[nodiscard]] std::vector<std::int64_t> integers_or_none(
      std::initializer_list<std::string_view> names) const;
  [[nodiscard]] std::int64_t integer(std::initializer_list<std::string_view> names,
                                     std::int64_t otherwise) const;
  // The fields of a dialect attribute such as dimension_numbers; fails when missing.
  [[nodiscard]] AttributeList fields(std::initializer_list<std::string_view> names) const;
  [[nodiscard]] std::vector<std::int64_t> integers(const AttributeList& fields,
                                                   std::string_view name) const;  // {} when missing

  void expect_counts(std::size_t operands, std::size_t results) const;
  [[noreturn]] void fail(std::string_view message) const;

 private:
  const Module& module_;
  const Function& function_;
  const Op& op_;
};

// LT of "compare LT, ..." and of comparison_direction = #stablehlo<comparison_direction LT>.
[[nodiscard]] std::string comparison_direction(const Op& compare);

}  // namespace shardsim::stablehlo
