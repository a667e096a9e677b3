#include "validate/exchange/exchange.hpp"

#include <algorithm>
#include <cstring>

namespace shardsim {
namespace {

std::string bytes_of(const std::vector<double>& numbers) {
  std::string bytes(numbers.size() * sizeof(double), '\0');
  if (!numbers.empty()) std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

std::vector<double> numbers_of(const std::string& bytes) {
  std::vector<double> numbers(bytes.size() / sizeof(double));
  if (!numbers.empty()) std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(double));
  return numbers;
}

}  // namespace

std::vector<std::vector<double>> exchange_numbers(Exchange& exchange,
                                                  const std::vector<double>& mine) {
  std::vector<std::vector<double>> all;
  for (const std::string& bytes : exchange.all_gather(bytes_of(mine))) {
    all.push_back(numbers_of(bytes));
  }
  return all;
}

std::optional<std::string> disagreement(Exchange& exchange, const std::string& error) {
  const std::vector<std::string> errors = exchange.all_gather(error);
  const auto is_error = [](const std::string& text) { return !text.empty(); };
  if (std::none_of(errors.begin(), errors.end(), is_error)) return std::nullopt;
  const auto lower = errors.begin() + exchange.rank();
  return std::find(errors.begin(), lower, error) == lower ? error : "";
}

}  // namespace shardsim
