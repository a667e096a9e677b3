// Cells of tables: what is read, and the plain number that pages sort by.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/text.hpp"
#include "reports/format/figures.hpp"
#include "reports/format/tables.hpp"

namespace shardsim::cells {

inline Cell words(std::string_view text) { return {.text = std::string(text), .value = {}}; }
inline Cell number(std::int64_t count) { return {format_count(count), std::to_string(count)}; }
inline Cell bytes(Bytes size) { return {format_bytes(size), std::to_string(size.count())}; }
inline Cell duration(SimTime time) {
  const Seconds seconds = to_seconds(time);
  return {format_seconds(seconds), plain_number(seconds.count())};
}
inline Cell percent(double fraction) { return {format_percent(fraction), plain_number(fraction)}; }

}  // namespace shardsim::cells
