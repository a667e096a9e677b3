#include "base/json_reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/gzip.hpp"
#include "base/json.hpp"
#include "base/json_list.hpp"
#include "base/json_syntax.hpp"

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

// Builds a document from the parser's events. Refuses what a document of ours never needs: keys
// given twice, of which nlohmann's own builder would silently keep the last, and nesting so deep
// that walking it recursively could exhaust the stack. That builder also searches all keys for each
// new one, nine seconds for the 92,000 tensors of a large model.
// With `take` the elements of one list are handed over instead, and keys may be given twice.
class StrictBuilder : public nlohmann::json_sax<Json> {
 public:
  StrictBuilder(std::string_view text, const std::string& file, std::string_view list = {},
                TakeElement take = {})
      : text_(text), file_(file), list_(list), take_(std::move(take)) {}

  Json take() { return std::move(root_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t& value) override { return add(std::move(value)); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_array() override { return close(); }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool end_object() override { return close(); }

  bool key(string_t& name) override {
    if (!take_ && !open_.back().keys.insert(name).second) {
      throw InputError({file_, ""}, fmt::format("key \"{}\" is given twice", name));
    }
    key_ = std::move(name);
    return true;
  }

  bool parse_error(std::size_t byte, const std::string&,
                   const nlohmann::detail::exception& error) override {
    constexpr int number_overflow = 406;  // nlohmann's number for it
    if (error.id == number_overflow) {
      throw InputError({file_, ""}, "not valid JSON: a number is out of range");
    }
    // `byte` is how many have been read, the refused one among them.
    const SyntaxMistake mistake = explain_syntax(text_, byte == 0 ? 0 : byte - 1);
    const auto [line, column] = line_and_column(text_, mistake.at);
    throw InputError({file_, fmt::format("line {}, column {}", line, column)}, mistake.reason);
  }

 private:
  struct Container {
    Json value;
    std::string key;             // of it in the container around it
    std::set<std::string> keys;  // of an object: those seen
  };

  bool open(Json empty) {
    constexpr std::size_t deepest = 100;
    if (open_.size() > deepest) {
      throw InputError({file_, ""}, fmt::format("nested deeper than {} levels", deepest));
    }
    open_.push_back({std::move(empty), std::move(key_), {}});
    return true;
  }

  bool close() {
    Container closed = std::move(open_.back());
    open_.pop_back();
    key_ = std::move(closed.key);
    return add(std::move(closed.value));
  }

  [[nodiscard]] bool is_in_list() const {
    return take_ && open_.size() == 2 && open_.back().value.is_array() && open_.back().key == list_;
  }

  bool add(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (is_in_list()) {
      take_(value, taken_++);
    } else if (Json& container = open_.back().value; container.is_array()) {
      container.push_back(std::move(value));
    } else {
      append_member(container, std::move(key_), std::move(value));
    }
    return true;
  }

  std::string_view text_;
  const std::string& file_;
  std::string_view list_;
  TakeElement take_;
  std::size_t taken_ = 0;
  std::vector<Container> open_;  // outermost first
  std::string key_;              // of the value to come
  Json root_;
};

}  // namespace

void JsonReader::fail(std::string_view message, std::string_view suggestion) const {
  throw InputError(place_, message, suggestion);
}

bool JsonReader::is_object() const { return value_->is_object(); }
bool JsonReader::is_array() const { return value_->is_array(); }
bool JsonReader::is_string() const { return value_->is_string(); }
bool JsonReader::is_number() const { return value_->is_number(); }
bool JsonReader::is_bool() const { return value_->is_boolean(); }
bool JsonReader::is_null() const { return value_->is_null(); }

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
  if (!value_->is_string()) {
    fail(fmt::format("expected one of {}, found {}", fmt::join(choices, ", "), kind_of(*value_)));
  }
  std::string text = string();
  if (std::find(choices.begin(), choices.end(), text) != choices.end()) return text;
  const std::string suggestion = closest(text, choices);
  if (choices.size() == 1 && !suggestion.empty()) {
    fail(fmt::format("unknown value \"{}\"", text), suggestion);
  }
  fail(fmt::format("unknown value \"{}\"; known are {}", text, fmt::join(choices, ", ")),
       suggestion);
}

void append_member(Json& object, std::string key, Json value) {
  // The vector beneath the map: its own emplace looks for the key first.
  using Members = Json::object_t::Container;
  static_cast<Members&>(object.get_ref<Json::object_t&>())
      .emplace_back(std::move(key), std::move(value));
}

Json parse_json(std::string_view text, const std::string& file) {
  StrictBuilder builder(text, file);
  static_cast<void>(Json::sax_parse(text, &builder, Json::input_format_t::json, /*strict=*/true,
                                    /*ignore_comments=*/true));
  return builder.take();
}

Json parse_json_list(std::string_view text, const std::string& file, std::string_view list,
                     const TakeElement& take) {
  StrictBuilder builder(text, file, list, take);
  static_cast<void>(Json::sax_parse(text, &builder));
  return builder.take();
}

Json load_json(const std::string& path) { return parse_json(read_maybe_gzip(path), path); }

}  // namespace shardsim
