#include "workloads/models/documents.hpp"

namespace shardsim {
namespace {

double tokens_in(const std::map<std::int64_t, double>& lengths) {
  double tokens = 0;
  for (const auto& [length, count] : lengths) tokens += count * static_cast<double>(length);
  return tokens;
}

}  // namespace

double Documents::length_seen() const {
  double sum = 0;
  for (const auto& [length, count] : lengths) {
    sum += count * static_cast<double>(length) * static_cast<double>(length);
  }
  return sum / tokens_in(lengths);
}

double Documents::share_of_pairs(std::int64_t tokens,
                                 const std::function<double(std::int64_t)>& fraction) const {
  double pairs = 0;
  for (const auto& [length, count] : lengths) {
    const auto size = static_cast<double>(length);
    pairs += count * size * size * fraction(length);
  }
  return pairs / tokens_in(lengths) / static_cast<double>(tokens);
}

}  // namespace shardsim
