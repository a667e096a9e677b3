#include "stablehlo/loops.hpp"

#include <algorithm>
#include <charconv>

#include "base/counting_loop.hpp"
#include "base/index.hpp"
#include "stablehlo/op_view.hpp"

namespace shardsim::stablehlo {
namespace {

constexpr std::int64_t largest_constant = std::int64_t{1} << 40;

// The value of an integer constant that is one number. Conversions between integers keep it.
std::optional<std::int64_t> constant_of(const Function& function, ValueId value) {
  const Op* op = function.definition(value);
  while (op != nullptr && op->name == "stablehlo.convert" && op->operands.size() == 1) {
    op = function.definition(op->operands.front());
  }
  if (op == nullptr || (op->name != "stablehlo.constant" && op->name != "sdy.constant")) return {};
  const Attribute* attribute = find(op->attributes, "value");
  if (attribute == nullptr) return {};
  const std::string& text = attribute->text;
  std::int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || rest != end) return {};
  if (number > largest_constant || number < -largest_constant) return {};
  return number;
}

struct Comparison {
  std::string direction;
  ValueId variable = 0;
  std::int64_t limit = 0;
};

// What the condition compares, the constant on the right.
std::optional<Comparison> comparison_of(const Function& function, const Region& condition) {
  if (condition.ops.empty()) return {};
  const Op& end = function.op(condition.ops.back());
  if (end.operands.size() != 1) return {};
  const Op* compare = function.definition(end.operands.front());
  if (compare == nullptr || compare->name != "stablehlo.compare" || compare->operands.size() != 2) {
    return {};
  }
  const ValueId lhs = compare->operands[0];
  const ValueId rhs = compare->operands[1];
  const std::string direction = comparison_direction(*compare);
  if (const auto limit = constant_of(function, rhs)) return Comparison{direction, lhs, *limit};
  if (const auto limit = constant_of(function, lhs)) {
    return Comparison{std::string(mirrored(direction)), rhs, *limit};
  }
  return {};
}

// What one round of the body adds to its argument number `index`.
std::optional<std::int64_t> step_of(const Function& function, const Region& body,
                                    std::size_t index) {
  if (body.ops.empty()) return {};
  const Op& end = function.op(body.ops.back());
  if (index >= end.operands.size() || index >= body.arguments.size()) return {};
  const Op* add = function.definition(end.operands[index]);
  if (add == nullptr || add->operands.size() != 2) return {};
  const ValueId variable = body.arguments[index];
  const auto lhs = constant_of(function, add->operands[0]);
  const auto rhs = constant_of(function, add->operands[1]);
  if (add->name == "stablehlo.add" && add->operands[0] == variable && rhs) return rhs;
  if (add->name == "stablehlo.add" && add->operands[1] == variable && lhs) return lhs;
  if (add->name == "stablehlo.subtract" && add->operands[0] == variable && rhs) return -*rhs;
  return {};
}

}  // namespace

std::optional<std::int64_t> trip_count(const Function& function, const Op& loop) {
  if (loop.name != "stablehlo.while" || loop.regions.size() != 2) return {};
  const Region& condition = function.regions[at(loop.regions[0])];
  const Region& body = function.regions[at(loop.regions[1])];
  const auto comparison = comparison_of(function, condition);
  if (!comparison) return {};
  const auto found =
      std::find(condition.arguments.begin(), condition.arguments.end(), comparison->variable);
  if (found == condition.arguments.end()) return {};
  const auto index = static_cast<std::size_t>(found - condition.arguments.begin());
  if (index >= loop.operands.size()) return {};
  const auto start = constant_of(function, loop.operands[index]);
  const auto step = step_of(function, body, index);
  if (!start || !step) return {};
  return counted_rounds(*start, *step, comparison->direction, comparison->limit);
}

}  // namespace shardsim::stablehlo
