#include "base/json_reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/file.hpp"

namespace shardsim {
namespace {

// RFC 6901 escapes.
std::string pointer_step(std::string_view key) {
  std::string step = "/";
  for (char c : key) {
    if (c == '~') {
      step += "~0";
    } else if (c == '/') {
      step += "~1";
    } else {
      step += c;
    }
  }
  return step;
}

std::string kind_of(const Json& value) {
  if (value.is_null()) return "null";
  if (value.is_boolean()) return "true or false";
  if (value.is_number()) return "a number";
  if (value.is_string()) return "a string";
  if (value.is_array()) return "an array";
  return "an object";
}

std::pair<std::size_t, std::size_t> line_and_column(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte, text.size()));
  const auto line = static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n')) + 1;
  const std::size_t newline = before.rfind('\n');
  return {line, newline == std::string_view::npos ? before.size() + 1 : before.size() - newline};
}

// Refuses what a document of ours never needs: keys given twice, of which the parser would silently
// keep the last, and nesting so deep that walking it recursively could exhaust the stack.
class StrictParse {
 public:
  explicit StrictParse(const std::string& file) : file_(file) {}

  bool operator()(int depth, Json::parse_event_t event, const Json& parsed) {
    constexpr int deepest = 100;
    if (depth > deepest) {
      throw InputError({file_, ""}, fmt::format("nested deeper than {} levels", deepest));
    }
    if (event == Json::parse_event_t::object_start) keys_.emplace_back();
    if (event == Json::parse_event_t::object_end) keys_.pop_back();
    if (event == Json::parse_event_t::key) {
      const auto key = parsed.get<std::string>();
      if (!keys_.back().insert(key).second) {
        throw InputError({file_, ""}, fmt::format("key \"{}\" is given twice", key));
      }
    }
    return true;
  }

 private:
  const std::string& file_;
  std::vector<std::set<std::string>> keys_;  // of every object that is open
};

}  // namespace

void JsonReader::fail(std::string_view message, std::string_view suggestion) const {
  throw InputError(place_, message, suggestion);
}

JsonReader JsonReader::at(std::string_view key) const {
  if (!value_->is_object()) fail(fmt::format("expected an object, found {}", kind_of(*value_)));
  const auto found = value_->find(std::string(key));
  if (found == value_->end()) fail(fmt::format("missing key \"{}\"", key));
  return {*found, {place_.file, place_.pointer + pointer_step(key)}};
}

std::optional<JsonReader> JsonReader::find(std::string_view key) const {
  if (!value_->is_object()) fail(fmt::format("expected an object, found {}", kind_of(*value_)));
  const auto found = value_->find(std::string(key));
  if (found == value_->end() || found->is_null()) return std::nullopt;
  return JsonReader(*found, {place_.file, place_.pointer + pointer_step(key)});
}

std::vector<std::pair<std::string, JsonReader>> JsonReader::members() const {
  if (!value_->is_object()) fail(fmt::format("expected an object, found {}", kind_of(*value_)));
  std::vector<std::pair<std::string, JsonReader>> result;
  for (const auto& [key, value] : value_->items()) {
    result.emplace_back(key, JsonReader(value, {place_.file, place_.pointer + pointer_step(key)}));
  }
  return result;
}

void JsonReader::only_keys(const std::vector<std::string>& known) const {
  if (!value_->is_object()) fail(fmt::format("expected an object, found {}", kind_of(*value_)));
  for (const auto& [key, value] : value_->items()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      const std::string suggestion = closest(key, known);
      if (!suggestion.empty()) fail(fmt::format("unknown key \"{}\"", key), suggestion);
      fail(fmt::format("unknown key \"{}\"; known are {}", key, fmt::join(known, ", ")));
    }
  }
}

std::vector<JsonReader> JsonReader::elements() const {
  if (!value_->is_array()) fail(fmt::format("expected an array, found {}", kind_of(*value_)));
  std::vector<JsonReader> result;
  for (std::size_t i = 0; i < value_->size(); ++i) {
    result.emplace_back((*value_)[i], Place{place_.file, fmt::format("{}/{}", place_.pointer, i)});
  }
  return result;
}

std::string JsonReader::string() const {
  if (!value_->is_string()) fail(fmt::format("expected a string, found {}", kind_of(*value_)));
  return value_->get<std::string>();
}

bool JsonReader::boolean() const {
  if (!value_->is_boolean())
    fail(fmt::format("expected true or false, found {}", kind_of(*value_)));
  return value_->get<bool>();
}

double JsonReader::number() const {
  if (!value_->is_number()) fail(fmt::format("expected a number, found {}", kind_of(*value_)));
  return value_->get<double>();
}

std::int64_t JsonReader::integer(std::int64_t min, std::int64_t max) const {
  if (!value_->is_number()) fail(fmt::format("expected an integer, found {}", kind_of(*value_)));
  if (value_->is_number_unsigned()) {
    const auto number = value_->get<std::uint64_t>();
    if (number <= static_cast<std::uint64_t>(max) && static_cast<std::int64_t>(number) >= min) {
      return static_cast<std::int64_t>(number);
    }
  } else if (value_->is_number_integer()) {
    const auto number = value_->get<std::int64_t>();
    if (number >= min && number <= max) return number;
  } else {
    const auto number = value_->get<double>();
    if (std::floor(number) != number) fail(fmt::format("expected an integer, found {}", number));
  }
  fail(fmt::format("{} is out of range, must be from {} to {}", value_->dump(), min, max));
}

std::string JsonReader::choice(const std::vector<std::string>& choices) const {
  std::string text = string();
  if (std::find(choices.begin(), choices.end(), text) != choices.end()) return text;
  const std::string suggestion = closest(text, choices);
  if (!suggestion.empty()) fail(fmt::format("unknown value \"{}\"", text), suggestion);
  fail(fmt::format("unknown value \"{}\"; known are {}", text, fmt::join(choices, ", ")));
}

Json parse_json(std::string_view text, const std::string& file) {
  try {
    return Json::parse(text, StrictParse(file), /*allow_exceptions=*/true,
                       /*ignore_comments=*/true);
  } catch (const Json::parse_error& error) {
    const auto [line, column] = line_and_column(text, error.byte == 0 ? 0 : error.byte - 1);
    const std::string where = fmt::format("line {}, column {}", line, column);
    const bool truncated = error.byte > text.size();
    throw InputError({file, where}, truncated ? "JSON ends too early" : "not valid JSON");
  } catch (const Json::out_of_range&) {
    throw InputError({file, ""}, "not valid JSON: a number is out of range");
  }
}

Json load_json(const std::string& path) { return parse_json(read_file(path), path); }

}  // namespace shardsim
