#include "experiments/read_algorithms.hpp"

#include <fmt/format.h>

#include "base/json.hpp"
#include "measurements/collective_measurement.hpp"

namespace shardsim {
namespace {

constexpr std::string_view example = "all-reduce=Ring/LL128,all-gather over data=Ring";

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(separator, at), text.size());
    parts.push_back(trimmed(text.substr(at, end - at)));
    at = end + 1;
  }
  return parts;
}

// "all-reduce over data+fsdp"
void read_which(std::string_view text, const Place& place, ToldAlgorithm& told) {
  constexpr std::string_view over = " over ";
  const std::size_t at = text.find(over);
  const Json kind = trimmed(text.substr(0, at));
  told.kind = read_collective_kind(JsonReader(kind, place));
  if (at == std::string_view::npos) return;
  for (const std::string_view axis : split(text.substr(at + over.size()), '+')) {
    if (axis.empty()) {
      throw InputError(place, fmt::format("\"{}\" names no axes, as data+fsdp does",
                                          text.substr(at + over.size())));
    }
    told.axes.emplace_back(axis);
  }
}

// "Ring/LL128"
void read_what(std::string_view text, const Place& place, ToldAlgorithm& told) {
  const std::vector<std::string_view> parts = split(text, '/');
  told.algorithm = parts[0];
  if (parts.size() == 2) told.protocol = parts[1];
  const bool is_complete = parts.size() == 2 ? !told.protocol.empty() : !told.algorithm.empty();
  if (parts.size() > 2 || !is_complete) {
    throw InputError(place,
                     fmt::format("\"{}\" is not ALGORITHM, ALGORITHM/PROTOCOL or /PROTOCOL", text));
  }
}

ToldAlgorithm read_one(std::string_view which, std::string_view what, const Place& place) {
  ToldAlgorithm told;
  told.algorithm_place = place;
  told.protocol_place = place;
  read_which(which, place, told);
  read_what(what, place, told);
  return told;
}

}  // namespace

std::vector<ToldAlgorithm> read_algorithms(const JsonReader& json) {
  std::vector<ToldAlgorithm> all;
  if (!json.is_string()) {
    for (const auto& [which, what] : json.members()) {
      all.push_back(read_one(which, what.string(), what.place()));
    }
    return all;
  }
  const std::string text = json.string();
  for (const std::string_view part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) {
      json.fail(
          fmt::format("\"{}\" is not KIND=ALGORITHM, expected for example \"{}\"", part, example));
    }
    all.push_back(
        read_one(trimmed(part.substr(0, equals)), trimmed(part.substr(equals + 1)), json.place()));
  }
  return all;
}

}  // namespace shardsim
