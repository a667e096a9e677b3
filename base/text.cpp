#include "base/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <span>

namespace shardsim {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr auto kibi = static_cast<double>(KiB);
constexpr auto mebi = static_cast<double>(MiB);
constexpr auto gibi = static_cast<double>(GiB);
constexpr double tebi = 1024 * gibi;

constexpr std::array byte_units{
    Unit{"B", 1},     Unit{"kB", 1e3},   Unit{"KB", 1e3},   Unit{"MB", 1e6},   Unit{"GB", 1e9},
    Unit{"TB", 1e12}, Unit{"KiB", kibi}, Unit{"MiB", mebi}, Unit{"GiB", gibi}, Unit{"TiB", tebi}};
constexpr std::array rate_units{Unit{"B/s", 1},        Unit{"kB/s", 1e3},     Unit{"MB/s", 1e6},
                                Unit{"GB/s", 1e9},     Unit{"TB/s", 1e12},    Unit{"KiB/s", kibi},
                                Unit{"MiB/s", mebi},   Unit{"GiB/s", gibi},   Unit{"TiB/s", tebi},
                                Unit{"Gb/s", 1e9 / 8}, Unit{"Tb/s", 1e12 / 8}};
constexpr std::array flop_units{Unit{"FLOP/s", 1}, Unit{"GFLOP/s", 1e9}, Unit{"TFLOP/s", 1e12},
                                Unit{"PFLOP/s", 1e15}};
constexpr std::array time_units{Unit{"s", 1}, Unit{"ms", 1e-3}, Unit{"us", 1e-6}, Unit{"ns", 1e-9},
                                Unit{"ps", 1e-12}};
constexpr std::array power_units{Unit{"W", 1}, Unit{"kW", 1e3}};
constexpr std::array energy_units{Unit{"pJ", 1e-12}, Unit{"nJ", 1e-9}, Unit{"J", 1}};

double parse_with_unit(std::string_view text, std::span<const Unit> units, std::string_view what,
                       std::string_view example, const Place& place) {
  const std::string copy(text);
  char* end = nullptr;
  const double number = std::strtod(copy.c_str(), &end);
  if (end == copy.c_str()) {
    throw InputError(
        place, fmt::format("\"{}\" is not {}, expected for example \"{}\"", text, what, example));
  }
  std::string_view unit(end);
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  while (!unit.empty() && unit.back() == ' ') unit.remove_suffix(1);
  if (unit.empty()) {
    throw InputError(place,
                     fmt::format("\"{}\" has no unit, expected for example \"{}\"", text, example));
  }
  if (!std::isfinite(number) || number < 0) {
    throw InputError(
        place, fmt::format("\"{}\" is not a possible {}", text, what.substr(what.find(' ') + 1)));
  }
  for (const Unit& known : units) {
    if (known.name == unit) return number * known.factor;
  }
  std::vector<std::string> names;
  for (const Unit& known : units) names.emplace_back(known.name);
  throw InputError(place, fmt::format("unknown unit \"{}\" of {}", unit, what),
                   closest(unit, names));
}

// The largest of `steps` that leaves at least one before the point.
std::string scaled(double value, std::span<const Unit> steps, int digits) {
  for (const Unit& step : steps) {
    if (std::abs(value) >= step.factor) {
      return fmt::format("{:.{}f} {}", value / step.factor, digits, step.name);
    }
  }
  return fmt::format("{:.{}f} {}", value / steps.back().factor, digits, steps.back().name);
}

}  // namespace

Bytes parse_bytes(std::string_view text, const Place& place) {
  const double bytes = parse_with_unit(text, byte_units, "a size", "80 GB", place);
  constexpr double limit = 9.2e18;  // below 2^63
  if (bytes > limit) throw InputError(place, fmt::format("\"{}\" is too large", text));
  return Bytes(static_cast<std::int64_t>(std::llround(bytes)));
}

Bandwidth parse_bandwidth(std::string_view text, const Place& place) {
  return Bandwidth(parse_with_unit(text, rate_units, "a bandwidth", "450 GB/s", place));
}

FlopRate parse_flop_rate(std::string_view text, const Place& place) {
  return FlopRate(parse_with_unit(text, flop_units, "a compute rate", "989 TFLOP/s", place));
}

Seconds parse_seconds(std::string_view text, const Place& place) {
  return Seconds(parse_with_unit(text, time_units, "a duration", "2 us", place));
}

Power parse_power(std::string_view text, const Place& place) {
  return Power(parse_with_unit(text, power_units, "a power", "700 W", place));
}

Energy parse_energy(std::string_view text, const Place& place) {
  return Energy(parse_with_unit(text, energy_units, "an energy", "1.2 pJ", place));
}

std::string format_bytes(Bytes bytes) {
  if (std::abs(bytes.count()) < KiB) return fmt::format("{} B", bytes.count());
  static constexpr std::array steps{Unit{"TiB", tebi}, Unit{"GiB", gibi}, Unit{"MiB", mebi},
                                    Unit{"KiB", kibi}};
  return scaled(static_cast<double>(bytes.count()), steps, 1);
}

std::string format_seconds(Seconds duration) {
  if (duration.count() == 0) return "0 s";
  static constexpr std::array steps{Unit{"s", 1}, Unit{"ms", 1e-3}, Unit{"us", 1e-6},
                                    Unit{"ns", 1e-9}};
  return scaled(duration.count(), steps, duration.count() >= 1 || duration.count() < 1e-3 ? 3 : 2);
}

std::string format_bandwidth(Bandwidth rate) {
  static constexpr std::array steps{Unit{"TB/s", 1e12}, Unit{"GB/s", 1e9}, Unit{"MB/s", 1e6},
                                    Unit{"kB/s", 1e3}, Unit{"B/s", 1}};
  return scaled(rate.count(), steps, 1);
}

std::string format_flop_rate(FlopRate rate) {
  static constexpr std::array steps{Unit{"PFLOP/s", 1e15}, Unit{"TFLOP/s", 1e12},
                                    Unit{"GFLOP/s", 1e9}, Unit{"FLOP/s", 1}};
  return scaled(rate.count(), steps, 1);
}

std::string format_flops(Flops flops) {
  static constexpr std::array steps{Unit{"EFLOP", 1e18}, Unit{"PFLOP", 1e15}, Unit{"TFLOP", 1e12},
                                    Unit{"GFLOP", 1e9},  Unit{"MFLOP", 1e6},  Unit{"kFLOP", 1e3},
                                    Unit{"FLOP", 1}};
  return scaled(flops.count(), steps, 2);
}

std::string format_count(std::int64_t count) {
  std::string digits = std::to_string(count < 0 ? -count : count);
  for (auto place = static_cast<std::ptrdiff_t>(digits.size()) - 3; place > 0; place -= 3) {
    digits.insert(static_cast<std::size_t>(place), ",");
  }
  return count < 0 ? "-" + digits : digits;
}

std::string counted(std::int64_t count, std::string_view noun) {
  const char* ending = noun.ends_with('s') ? "es" : "s";
  return fmt::format("{} {}{}", format_count(count), noun, count == 1 ? "" : ending);
}

std::string number_ranges(const std::vector<std::int64_t>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text +=
        last == i ? std::to_string(numbers[i]) : fmt::format("{}-{}", numbers[i], numbers[last]);
    i = last + 1;
  }
  return text;
}

std::string dims_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::string format_percent(double fraction) { return fmt::format("{:.1f} %", 100 * fraction); }

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

}  // namespace shardsim
