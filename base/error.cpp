#include "base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <numeric>
#include <set>

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

// "dgx-h100" is made of "dgx" and "h100", in whatever case.
std::set<std::string> parts_of(std::string_view name) {
  std::set<std::string> parts;
  std::string part;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) {
      part += static_cast<char>(std::tolower(byte));
    } else if (!part.empty()) {
      parts.insert(std::move(part));
      part.clear();
    }
  }
  if (!part.empty()) parts.insert(std::move(part));
  return parts;
}

// The shortest candidate that has all parts of the word, or all of whose parts the word has.
std::string closest_by_parts(std::string_view word, const std::vector<std::string>& candidates) {
  const std::set<std::string> wanted = parts_of(word);
  const auto holds = [](const std::set<std::string>& all, const std::set<std::string>& some) {
    return !some.empty() && std::includes(all.begin(), all.end(), some.begin(), some.end());
  };
  std::string best;
  for (const std::string& candidate : candidates) {
    const std::set<std::string> parts = parts_of(candidate);
    if (!holds(parts, wanted) && !holds(wanted, parts)) continue;
    if (best.empty() || candidate.size() < best.size()) best = candidate;
  }
  return best;
}

}  // namespace

InputError::InputError(const Place& place, std::string_view message, std::string_view suggestion)
    : std::runtime_error(compose(place, message, suggestion)), names_file_(!place.file.empty()) {}

void rethrow_in(const std::string& file, const InputError& error) {
  if (error.names_file()) throw;
  throw InputError({file, ""}, error.what());
}

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
  return best.empty() ? closest_by_parts(word, candidates) : best;
}

}  // namespace shardsim
