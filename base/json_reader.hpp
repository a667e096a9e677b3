// A strict cursor over a JSON document: every read says what it expects, every error says where.
//
//   JsonReader mesh = experiment.at("mesh");
//   for (auto& [axis, size] : mesh.members()) sizes.push_back(size.integer(1, max_devices));
//   experiment.only_keys({"workload", "mesh", "strategy", "machine"});   // a typo is an error
//
// Comments (// and /* */) are allowed. The document outlives its readers. What a Json is made of is
// in base/json.hpp.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/units.hpp"

namespace shardsim {

using Json = nlohmann::ordered_json;

class JsonReader {
 public:
  JsonReader(const Json& value, Place place) : value_(&value), place_(std::move(place)) {}

  [[nodiscard]] const Place& place() const { return place_; }
  [[nodiscard]] const Json& json() const { return *value_; }

  [[nodiscard]] bool is_object() const;
  [[nodiscard]] bool is_array() const;
  [[nodiscard]] bool is_string() const;
  [[nodiscard]] bool is_number() const;
  [[nodiscard]] bool is_bool() const;
  [[nodiscard]] bool is_null() const;

  // Members of an object. `at` throws when the key is missing; `find` answers nothing for a
  // missing key or a null.
  [[nodiscard]] JsonReader at(std::string_view key) const;
  [[nodiscard]] std::optional<JsonReader> find(std::string_view key) const;
  [[nodiscard]] std::vector<std::pair<std::string, JsonReader>> members() const;
  void only_keys(const std::vector<std::string>& known) const;

  [[nodiscard]] std::vector<JsonReader> elements() const;

  [[nodiscard]] std::string string() const;
  [[nodiscard]] bool boolean() const;
  [[nodiscard]] double number() const;
  [[nodiscard]] std::int64_t integer(std::int64_t min, std::int64_t max) const;
  // One of `choices`; anything else is an error that lists or suggests them.
  [[nodiscard]] std::string choice(const std::vector<std::string>& choices) const;

  [[noreturn]] void fail(std::string_view message, std::string_view suggestion = {}) const;

 private:
  const Json* value_;
  Place place_;
};

// Adds a member whose key the object lacks, in constant time: operator[] searches all its keys.
void append_member(Json& object, std::string key, Json value);

// Parses text; a syntax error is an InputError with line and column. So is a key given twice in an
// object, and nesting of more than 100 levels.
[[nodiscard]] Json parse_json(std::string_view text, const std::string& file);
// Reads and parses a file; an unreadable file is an InputError.
[[nodiscard]] Json load_json(const std::string& path);

}  // namespace shardsim
