#include <fmt/format.h>
#include <fmt/ranges.h>

#include "strategies/rules/python_lexer.hpp"

#include "base/json.hpp"

namespace shardsim {
namespace {

using ValueKind = PythonValue::Kind;

std::string quoted(const std::string& text) {
  const char quote = text.find('\'') == std::string::npos ? '\'' : '"';
  std::string result(1, quote);
  for (const char c : text) {
    if (c == quote || c == '\\') result += '\\';
    if (c == '\n') {
      result += "\\n";
    } else {
      result += c;
    }
  }
  return result + quote;
}

std::string joined(const PythonValue& value) {
  std::vector<std::string> words;
  words.reserve(value.items.size());
  for (const PythonValue& item : value.items) words.push_back(to_string(item));
  if (value.kind == ValueKind::dict) {
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
      words[i] += ": " + words[i + 1];
      words.erase(words.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    }
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace

bool PythonValue::is_number() const {
  return kind == ValueKind::boolean || kind == ValueKind::integer || kind == ValueKind::real;
}

bool PythonValue::is_collection() const {
  return kind == ValueKind::tuple || kind == ValueKind::list || kind == ValueKind::set ||
         kind == ValueKind::dict;
}

double PythonValue::as_real() const {
  return kind == ValueKind::real ? real : static_cast<double>(integer);
}

bool PythonValue::is_true() const {
  switch (kind) {
    case ValueKind::none:
      return false;
    case ValueKind::boolean:
    case ValueKind::integer:
    case ValueKind::real:
      return as_real() != 0;
    case ValueKind::string:
    case ValueKind::bytes:
      return !text.empty();
    case ValueKind::other:
      return true;
    default:
      return !items.empty();
  }
}

bool operator==(const PythonValue& a, const PythonValue& b) {
  if (a.is_number() && b.is_number()) {
    const bool exact = a.kind != ValueKind::real && b.kind != ValueKind::real;
    return exact ? a.integer == b.integer : a.as_real() == b.as_real();
  }
  return a.kind == b.kind && a.text == b.text && a.items == b.items;
}

std::string to_string(const PythonValue& value) {
  switch (value.kind) {
    case ValueKind::none:
      return "None";
    case ValueKind::boolean:
      return value.integer != 0 ? "True" : "False";
    case ValueKind::integer:
      return std::to_string(value.integer);
    case ValueKind::real:
      return fmt::format("{:#}", value.real);
    case ValueKind::string:
      return quoted(value.text);
    case ValueKind::bytes:
      return "b" + quoted(value.text);
    case ValueKind::tuple:
      return fmt::format("({}{})", joined(value), value.items.size() == 1 ? "," : "");
    case ValueKind::list:
      return fmt::format("[{}]", joined(value));
    case ValueKind::set:
      return value.items.empty() ? "set()" : fmt::format("{{{}}}", joined(value));
    case ValueKind::dict:
      return fmt::format("{{{}}}", joined(value));
    case ValueKind::other:
      break;
  }
  return value.text;
}

Json to_json(const PythonValue& value) {
  switch (value.kind) {
    case ValueKind::none:
      return nullptr;
    case ValueKind::boolean:
      return value.integer != 0;
    case ValueKind::integer:
      return value.integer;
    case ValueKind::real:
      return value.real;
    case ValueKind::dict: {
      Json object = Json::object();
      for (std::size_t i = 0; i + 1 < value.items.size(); i += 2) {
        const PythonValue& key = value.items[i];
        object[key.kind == ValueKind::string ? key.text : to_string(key)] =
            to_json(value.items[i + 1]);
      }
      return object;
    }
    case ValueKind::tuple:
    case ValueKind::list:
    case ValueKind::set: {
      Json array = Json::array();
      for (const PythonValue& item : value.items) array.push_back(to_json(item));
      return array;
    }
    default:
      return value.text;
  }
}

}  // namespace shardsim
