// What every fuzz target shares. A target hands text to a reader; the reader may throw InputError
// and nothing else, and what it accepts, written and read again, must come out the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string_view>

#include "base/json.hpp"

namespace shardsim {

inline void require_same(const Json& first, const Json& second) {
  if (first == second) return;
  std::cerr << "written and read again, the document differs:\n"
            << Json::diff(first, second).dump(1) << "\n";
  std::abort();
}

// As a file holds it.
inline Json as_written(const Json& document) { return parse_json(document.dump(), "output.json"); }

// Calls `read_and_write` with the parsed document, twice: the second time with what it returned.
template <class ReadAndWrite>
void fuzz_reader(const std::uint8_t* data, std::size_t size, ReadAndWrite read_and_write) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Json once;
  try {
    once = read_and_write(parse_json(text, "input.json"));
  } catch (const InputError&) {
    return;
  }
  require_same(once, read_and_write(as_written(once)));
}

}  // namespace shardsim
