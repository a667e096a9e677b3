// Fields of a profile: numbers with their units and sources.
#pragma once

#include <string>
#include <type_traits>

#include "base/json_reader.hpp"
#include "base/units.hpp"
#include "hardware_profiles/machine.hpp"

namespace shardsim {

// All throw InputError with the place in the file.

void check_date(const std::string& date, const Place& place);     // YYYY-MM or YYYY-MM-DD
[[nodiscard]] std::string read_text(const JsonReader& reader);    // not empty
[[nodiscard]] Source read_source(const JsonReader& number);       // of what stands beside "value"
[[nodiscard]] Bytes read_bytes(const JsonReader& value);          // these above 0
[[nodiscard]] Bandwidth read_bandwidth(const JsonReader& value);  //
[[nodiscard]] FlopRate read_flop_rate(const JsonReader& value);   //
[[nodiscard]] Power read_power(const JsonReader& value);          //
[[nodiscard]] Energy read_energy(const JsonReader& value);        //
[[nodiscard]] Seconds read_seconds(const JsonReader& value);      // at least 0
[[nodiscard]] double read_fraction(const JsonReader& value);      // above 0, at most 1
[[nodiscard]] std::int64_t read_count(const JsonReader& value);   // from 1 to most_counted
[[nodiscard]] bool read_flag(const JsonReader& value);

// Of the keys of a link; others are the caller's.
[[nodiscard]] LinkProfile read_link(const JsonReader& reader);

inline constexpr std::int64_t most_counted = std::int64_t{1} << 40;

// Of a number that stands alone, or of the kind "assumed": somebody's own, without a source.
inline constexpr const char* assumed_kind = "assumed";

// A number with its source: `read` turns the reader of "value" into the number. A bare value is
// assumed.
template <class Read>
[[nodiscard]] auto read_sourced(const JsonReader& number, Read read) {
  Sourced<std::invoke_result_t<Read, const JsonReader&>> result;
  if (!number.is_object()) {
    result.value = read(number);
    result.source.kind = assumed_kind;
    return result;
  }
  number.only_keys({"value", "kind", "source", "date", "note"});
  result.value = read(number.at("value"));
  result.source = read_source(number);
  return result;
}

}  // namespace shardsim
