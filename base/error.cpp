#include "base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace shardsim {
namespace {

std::string compose(const Place& place, std::string_view message, std::string_view suggestion) {
  std::string text;
  if (!place.file.empty()) text += place.file + ": ";
  if (!place.pointer.empty()) text += place.pointer + ": ";
  text += message;
  if (!suggestion.empty()) text += fmt::format(", did you mean \"{}\"?", suggestion);
  return text;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

}  // namespace

InputError::InputError(const Place& place, std::string_view message, std::string_view suggestion)
    : std::runtime_error(compose(place, message, suggestion)) {}

std::string closest(std::string_view word, const std::vector<std::string>& candidates) {
  const std::size_t near_enough = std::max<std::size_t>(2, word.size() / 3);
  std::string best;
  std::size_t best_distance = near_enough + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    const bool completes =
        distance == best_distance && candidate.starts_with(word) && !best.starts_with(word);
    if ((distance < best_distance || completes) && distance < candidate.size()) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace shardsim
