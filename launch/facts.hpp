// What a framework's own file says, by names that both directions share: the path of a field of an
// experiment ("workload.sequence", "strategy.sequence_parallel"), or the name of something that
// fields are made of ("mesh.tp", "model.hidden"), each with the place it was read at.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/json_reader.hpp"
#include "base/owned_json.hpp"

namespace shardsim {

inline constexpr std::int64_t largest_number = std::int64_t{1} << 40;

class Facts {
 public:
  struct Fact {
    OwnedJson value;
    Place place;
    bool given = false;  // by the file, not by the framework's default
  };

  explicit Facts(Place whole = {}) : whole_(std::move(whole)) {}

  void set(std::string_view name, Json value);
  void set(std::string_view name, Json value, Place place, bool given);
  void erase(std::string_view name);

  [[nodiscard]] bool has(std::string_view name) const;    // and not null
  [[nodiscard]] bool given(std::string_view name) const;  // by the file itself
  [[nodiscard]] const Json& at(std::string_view name) const;
  [[nodiscard]] Json get(std::string_view name) const;  // null: not there
  // Throw InputError at the fact's place, also where it is missing.
  [[nodiscard]] std::int64_t integer(std::string_view name, std::int64_t least = 1) const;
  [[nodiscard]] std::int64_t integer_or(std::string_view name, std::int64_t otherwise) const;
  [[nodiscard]] double number(std::string_view name) const;
  [[nodiscard]] bool flag(std::string_view name) const;  // false: not there
  [[nodiscard]] std::string text(std::string_view name) const;
  [[nodiscard]] bool is(std::string_view name, std::string_view word) const;

  [[nodiscard]] Place place(std::string_view name) const;
  [[nodiscard]] const Place& whole() const { return whole_; }
  [[noreturn]] void fail(std::string_view name, std::string_view message,
                         std::string_view suggestion = {}) const;
  // Those whose name begins so, at their paths in a document.
  void copy_paths(std::string_view prefix, Json& document) const;

  [[nodiscard]] const std::map<std::string, Fact, std::less<>>& all() const { return facts_; }

 private:
  Place whole_;
  std::map<std::string, Fact, std::less<>> facts_;
};

// The field at a dotted path, made with all objects on the way.
[[nodiscard]] Json& field_at(Json& document, std::string_view path);

}  // namespace shardsim
