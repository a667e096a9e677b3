#include "hardware_profiles/sourced_reader.hpp"

#include <fmt/format.h>

#include <cctype>

#include "base/json.hpp"
#include "base/text.hpp"

namespace shardsim {
namespace {

// YYYY-MM or YYYY-MM-DD.
bool is_date(const std::string& text) {
  if (text.size() != 7 && text.size() != 10) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool dash = i == 4 || i == 7;
    if (dash ? text[i] != '-' : std::isdigit(static_cast<unsigned char>(text[i])) == 0)
      return false;
  }
  return true;
}

// Text with its unit. A plain number goes to the parser too, which says what unit is missing.
template <class Quantity>
Quantity read_quantity(const JsonReader& value, Quantity (*parse)(std::string_view, const Place&)) {
  return parse(value.is_number() ? value.json().dump() : value.string(), value.place());
}

template <class Quantity>
Quantity read_positive(const JsonReader& value, Quantity (*parse)(std::string_view, const Place&)) {
  const Quantity quantity = read_quantity(value, parse);
  if (!(quantity > Quantity{})) value.fail("must be more than zero");
  return quantity;
}

}  // namespace

std::string read_text(const JsonReader& reader) {
  std::string text = reader.string();
  if (text.empty()) reader.fail("is empty");
  return text;
}

void check_date(const std::string& date, const Place& place) {
  if (is_date(date)) return;
  throw InputError(place,
                   fmt::format("\"{}\" is not a date, expected for example \"2026-08\"", date));
}

Source read_source(const JsonReader& number) {
  Source source;
  source.kind =
      number.at("kind").choice({"vendor", "code", "measured", "derived", "estimate", assumed_kind});
  if (source.kind == assumed_kind) {
    if (const auto note = number.find("note")) source.note = note->string();
    return source;
  }
  source.reference = read_text(number.at("source"));
  source.date = number.at("date").string();
  check_date(source.date, number.at("date").place());
  if (const auto note = number.find("note")) source.note = note->string();
  return source;
}

Bytes read_bytes(const JsonReader& value) { return read_positive(value, parse_bytes); }
Bandwidth read_bandwidth(const JsonReader& value) { return read_positive(value, parse_bandwidth); }
FlopRate read_flop_rate(const JsonReader& value) { return read_positive(value, parse_flop_rate); }
Power read_power(const JsonReader& value) { return read_positive(value, parse_power); }
Energy read_energy(const JsonReader& value) { return read_positive(value, parse_energy); }
Seconds read_seconds(const JsonReader& value) { return read_quantity(value, parse_seconds); }

double read_fraction(const JsonReader& value) {
  const double fraction = value.number();
  if (!(fraction > 0 && fraction <= 1)) {
    value.fail(fmt::format("{} is not an efficiency, must be above 0 and at most 1", fraction));
  }
  return fraction;
}

std::int64_t read_count(const JsonReader& value) { return value.integer(1, most_counted); }
bool read_flag(const JsonReader& value) { return value.boolean(); }

LinkProfile read_link(const JsonReader& reader) {
  return {read_sourced(reader.at("bandwidth"), read_bandwidth),
          read_sourced(reader.at("efficiency"), read_fraction),
          read_sourced(reader.at("latency"), read_seconds)};
}

}  // namespace shardsim
