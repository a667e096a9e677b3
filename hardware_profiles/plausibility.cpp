#include "hardware_profiles/plausibility.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "base/text.hpp"
#include "hardware_profiles/profile_io.hpp"
#include "hardware_profiles/sourced_reader.hpp"

namespace shardsim {
namespace {

// A value as profiles print it, in its base unit; nothing of words and shapes.
std::optional<double> magnitude(const std::string& value) {
  const Place nowhere;
  if (value.ends_with("FLOP/s")) return parse_flop_rate(value, nowhere).count();
  if (value.ends_with("B/s")) return parse_bandwidth(value, nowhere).count();
  if (value.ends_with("B")) return static_cast<double>(parse_bytes(value, nowhere).count());
  if (value.ends_with("s") && value.find(' ') != std::string::npos) {
    return parse_seconds(value, nowhere).count();
  }
  double number = 0;
  const char* const end = value.data() + value.size();
  const auto [stop, status] = std::from_chars(value.data(), end, number);
  if (status != std::errc{} || stop != end) return std::nullopt;
  return number;
}

struct Range {
  double least = 0;
  double most = 0;
  std::string least_text;
  std::string most_text;
};

// By quantity.
std::map<std::string, Range> ranges_of(const std::vector<Profile>& profiles) {
  std::map<std::string, Range> ranges;
  for (const Profile& profile : profiles) {
    for (const ProfileNumber& number : numbers_of(profile)) {
      const auto value = magnitude(number.value);
      if (!value) continue;
      const auto [found, is_new] =
          ranges.try_emplace(number.quantity, Range{*value, *value, number.value, number.value});
      Range& range = found->second;
      if (*value < range.least) {
        range.least = *value;
        range.least_text = number.value;
      }
      if (*value > range.most) {
        range.most = *value;
        range.most_text = number.value;
      }
    }
  }
  return ranges;
}

// A rate that was given in bits, most likely.
std::string bits_meant(const std::string& text, double value, const Range& range) {
  constexpr double bits_per_byte = 8;
  const double of_bits = value / bits_per_byte;
  if (!text.ends_with("GB/s") || of_bits < range.least / 2 || of_bits > range.most * 2) return {};
  return fmt::format(": was {} Gb/s meant, which are {}?", text.substr(0, text.find(' ')),
                     format_bandwidth(Bandwidth(of_bits)));
}

}  // namespace

std::vector<std::string> implausible_numbers(const Profile& profile) {
  std::vector<Profile> all;
  std::vector<Profile> alike;
  for (const std::string& name : shipped_profiles()) {
    all.push_back(load_profile(name, {}));
    if (all.back().device.name == profile.device.name) alike.push_back(all.back());
  }
  const std::map<std::string, Range> ranges = ranges_of(alike.empty() ? all : alike);
  const std::string whose = alike.empty()
                                ? std::string("of all shipped profiles")
                                : fmt::format("of shipped profiles with {}", profile.device.name);
  std::vector<std::string> lines;
  for (const ProfileNumber& number : numbers_of(profile)) {
    const auto value = magnitude(number.value);
    const auto range = ranges.find(number.quantity);
    if (!value || range == ranges.end()) continue;
    const Range& known = range->second;
    if (*value >= known.least / 2 && *value <= known.most * 2) continue;
    const std::string from_to = known.least == known.most
                                    ? known.least_text
                                    : fmt::format("{} to {}", known.least_text, known.most_text);
    lines.push_back(fmt::format("{} is {}; {} it is {}{}", number.quantity, number.value, whose,
                                from_to, bits_meant(number.value, *value, known)));
  }
  return lines;
}

std::string assumed_numbers(const Profile& profile) {
  std::vector<std::string> numbers;
  for (const ProfileNumber& number : numbers_of(profile)) {
    if (number.kind == assumed_kind) {
      numbers.push_back(fmt::format("{} {}", number.quantity, number.value));
    }
  }
  if (numbers.empty()) return {};
  return fmt::format("assumed, given without a source: {}", fmt::join(numbers, ", "));
}

}  // namespace shardsim
