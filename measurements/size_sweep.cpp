#include "measurements/size_sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string>

#include "base/text.hpp"

namespace shardsim {
namespace {

std::vector<std::string_view> pieces_of(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(separator, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

// nccl-tests' own way to write a size: 1G is 1 GiB.
std::string with_unit(std::string_view text) {
  const bool is_short = text.size() > 1 &&
                        std::isdigit(static_cast<unsigned char>(text[text.size() - 2])) != 0 &&
                        std::string_view("KMGT").find(text.back()) != std::string_view::npos;
  return std::string(text) + (is_short ? "iB" : "");
}

Bytes parse_size(std::string_view text, const Place& place) {
  const Bytes size = parse_bytes(with_unit(text), place);
  if (size.count() < 1) throw InputError(place, fmt::format("\"{}\" is less than a byte", text));
  if (size.count() > largest_size) {
    throw InputError(place, fmt::format("\"{}\" is more than 2^60 bytes", text));
  }
  return size;
}

// From one size of a range to the next: size * factor + step.
struct Stride {
  std::int64_t factor = 1;
  std::int64_t step = 0;
};

Stride parse_stride(std::string_view text, const Place& place) {
  if (text.starts_with('+')) return {1, parse_size(text.substr(1), place).count()};
  std::int64_t factor = 0;
  const char* const last = text.data() + text.size();
  const bool multiplies = text.starts_with('x');
  const auto [end, status] = std::from_chars(text.data() + (multiplies ? 1 : 0), last, factor);
  if (!multiplies || end != last || status == std::errc::invalid_argument) {
    throw InputError(place, fmt::format("\"{}\" is no step from size to size, expected for example "
                                        "\"x2\" or \"+1MiB\"",
                                        text));
  }
  if (status == std::errc::result_out_of_range || factor > largest_size) {
    throw InputError(place, fmt::format("\"{}\" is more than 2^60 times", text));
  }
  if (factor < 2) {
    throw InputError(place, fmt::format("\"{}\" never reaches the end; at least x2", text));
  }
  return {factor, 0};
}

void add_range(std::string_view text, const Place& place, std::vector<Bytes>& sizes) {
  const std::vector<std::string_view> parts = pieces_of(text, ':');
  if (parts.size() != 3) {
    throw InputError(place,
                     fmt::format("\"{}\" is no range of sizes, expected START:END:xFACTOR or "
                                 "START:END:+STEP, for example \"1KiB:8GiB:x2\"",
                                 text));
  }
  const Bytes first = parse_size(parts[0], place);
  const Bytes last = parse_size(parts[1], place);
  const Stride stride = parse_stride(parts[2], place);
  if (first > last) throw InputError(place, fmt::format("\"{}\" begins beyond its end", text));
  for (std::int64_t size = first.count();;) {
    sizes.emplace_back(size);
    if (sizes.size() > most_sizes) return;
    // The next is beyond the end when what is left of it is too little.
    if (size > (last.count() - stride.step) / stride.factor) return;
    size = size * stride.factor + stride.step;
  }
}

}  // namespace

std::vector<Bytes> parse_sizes(std::string_view text, const Place& place) {
  std::vector<Bytes> sizes;
  for (const std::string_view item : pieces_of(text, ',')) {
    if (item.find(':') != std::string_view::npos) {
      add_range(item, place, sizes);
    } else {
      sizes.push_back(parse_size(item, place));
    }
    if (sizes.size() > most_sizes) {
      constexpr std::size_t most_shown = 60;
      const bool is_long = text.size() > most_shown;
      throw InputError(place,
                       fmt::format("\"{}{}\" has more than {} sizes", text.substr(0, most_shown),
                                   is_long ? "..." : "", format_count(most_sizes)));
    }
  }
  return sizes;
}

}  // namespace shardsim
