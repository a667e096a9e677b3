// Keys of a strategy whose choices strategy_keys.hpp lists.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "base/json_reader.hpp"
#include "strategies/strategy_keys.hpp"

namespace shardsim {

// A key whose choices are in the order of the enum.
template <class Enum>
void read_enum(const JsonReader& json, std::string_view key, Enum& value) {
  const auto given = json.find(key);
  if (!given) return;
  const auto& names = choices_of_key(key);
  const auto found = std::find(names.begin(), names.end(), given->choice(names));
  value = static_cast<Enum>(found - names.begin());
}

template <class Enum>
const std::string& enum_name(std::string_view key, Enum value) {
  return choices_of_key(key)[static_cast<std::size_t>(value)];
}

// A key with two choices: whether it is this one.
inline void read_choice(const JsonReader& json, std::string_view key, std::string_view name,
                        bool& value) {
  if (const auto given = json.find(key)) value = given->choice(choices_of_key(key)) == name;
}

}  // namespace shardsim
