#include "strategies/rules/op_string.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sharding/rule_error.hpp"
#include "strategies/rules/python_expression.hpp"

namespace shardsim {
namespace {

using ExpressionKind = PythonExpression::Kind;
using ValueKind = PythonValue::Kind;

class Evaluator {
 public:
  Evaluator(std::string_view text, const Place& place) : text_(text), place_(place) {}

  [[noreturn]] void fail(std::string_view type, const std::string& message) const {
    throw RuleError(type, place_, fmt::format("{} in `{}`", message, text_));
  }

  std::string function_name(const PythonExpression& function) const {
    if (function.kind == ExpressionKind::name) return function.text;
    if (function.kind != ExpressionKind::attribute)
      fail("ValueError", "a call of something without a name");
    return function_name(function.children.front()) + "." + function.text;
  }

  // ast.literal_eval
  PythonValue value(const PythonExpression& expression) const {
    const auto& children = expression.children;
    switch (expression.kind) {
      case ExpressionKind::constant:
        return expression.value;
      case ExpressionKind::sign:
        return signed_number(expression);
      case ExpressionKind::tuple:
        return collection(ValueKind::tuple, children);
      case ExpressionKind::list:
        return collection(ValueKind::list, children);
      case ExpressionKind::set:
        return collection(ValueKind::set, children);
      case ExpressionKind::dict:
        return dict(children);
      case ExpressionKind::call:
        if (children.size() == 1 && expression.keywords.empty() &&
            children.front().kind == ExpressionKind::name && children.front().text == "set") {
          return {ValueKind::set};
        }
        break;
      default:
        break;
    }
    fail("ValueError", "an argument is no literal (a name needs quotes)");
  }

 private:
  PythonValue signed_number(const PythonExpression& expression) const {
    const PythonExpression& operand = expression.children.front();
    PythonValue number = operand.value;
    const bool is_complex = number.kind == ValueKind::other && number.text != "Ellipsis";
    if (operand.kind != ExpressionKind::constant || number.kind == ValueKind::boolean ||
        !(number.is_number() || is_complex)) {
      fail("ValueError", "a sign before something that is no number");
    }
    if (expression.text == "-") {
      number.integer = -number.integer;
      number.real = -number.real;
      if (is_complex) number.text.insert(0, "-");
    }
    return number;
  }

  PythonValue collection(ValueKind kind, const std::vector<PythonExpression>& children) const {
    PythonValue result{kind};
    for (const PythonExpression& child : children) result.items.push_back(value(child));
    if (kind == ValueKind::set) {
      for (const PythonValue& item : result.items) check_hashable(item);
    }
    return result;
  }

  PythonValue dict(const std::vector<PythonExpression>& children) const {
    PythonValue result{ValueKind::dict};
    for (std::size_t i = 0; i + 1 < children.size(); i += 2) {
      const PythonValue key = value(children[i]);
      const PythonValue item = value(children[i + 1]);
      check_hashable(key);
      std::size_t at = 0;
      while (at < result.items.size() && !(result.items[at] == key)) at += 2;
      if (at == result.items.size()) {
        result.items.push_back(key);
        result.items.push_back(item);
      } else {
        result.items[at + 1] = item;
      }
    }
    return result;
  }

  void check_hashable(const PythonValue& value) const {
    if (value.kind == ValueKind::tuple) {
      for (const PythonValue& item : value.items) check_hashable(item);
    } else if (value.is_collection()) {
      fail("TypeError", fmt::format("{} can be no member of a set and no key", to_string(value)));
    }
  }

  std::string_view text_;
  const Place& place_;
};

}  // namespace

OpCall parse_op(std::string_view text, const Place& place) {
  const PythonExpression expression = parse_python_expression(text, place);
  const Evaluator evaluate(text, place);
  OpCall call;
  if (expression.kind == ExpressionKind::name || expression.kind == ExpressionKind::attribute) {
    call.name = text;
    return call;
  }
  if (expression.kind != ExpressionKind::call)
    evaluate.fail("ValueError", "neither a name nor a call");
  call.name = evaluate.function_name(expression.children.front());
  for (std::size_t i = 1; i < expression.children.size(); ++i) {
    call.args.push_back(evaluate.value(expression.children[i]));
  }
  bool has_mapping = false;
  for (const auto& [key, argument] : expression.keywords) {
    has_mapping = has_mapping || key.empty();
    const PythonValue value = evaluate.value(argument);
    const auto earlier = std::find_if(call.kwargs.begin(), call.kwargs.end(),
                                      [&k = key](const auto& kwarg) { return kwarg.first == k; });
    if (earlier == call.kwargs.end()) {
      call.kwargs.emplace_back(key, value);
    } else {
      earlier->second = value;
    }
  }
  if (has_mapping) evaluate.fail("TypeError", "a keyword that is no name");
  return call;
}

std::vector<std::optional<PythonValue>> bind_arguments(const OpCall& call,
                                                       const std::vector<std::string>& parameters,
                                                       std::size_t required, const Place& place) {
  const auto fail = [&](const std::string& message, const std::string& suggestion = "") {
    throw RuleError("TypeError", place, fmt::format("{}() {}", call.name, message), suggestion);
  };
  if (call.args.size() > parameters.size()) {
    fail(fmt::format("takes at most {} arguments, {} are given", parameters.size(),
                     call.args.size()));
  }
  std::vector<std::optional<PythonValue>> bound(call.args.begin(), call.args.end());
  bound.resize(parameters.size());
  for (const auto& [key, value] : call.kwargs) {
    const auto at = std::find(parameters.begin(), parameters.end(), key);
    if (at == parameters.end()) {
      fail(fmt::format("has no argument \"{}\"", key), closest(key, parameters));
    }
    auto& slot = bound[static_cast<std::size_t>(at - parameters.begin())];
    if (slot) fail(fmt::format("is given argument \"{}\" twice", key));
    slot = value;
  }
  for (std::size_t i = 0; i < required; ++i) {
    if (!bound[i]) fail(fmt::format("needs argument \"{}\"", parameters[i]));
  }
  return bound;
}

}  // namespace shardsim
