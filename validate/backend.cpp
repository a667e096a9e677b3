#include "validate/backend.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <stdexcept>

#include "base/error.hpp"
#include "base/json.hpp"
#include "plan/plan_io.hpp"

namespace shardsim {
namespace {

std::string bytes_of(const std::vector<double>& numbers) {
  std::string bytes(numbers.size() * sizeof(double), '\0');
  if (!numbers.empty()) std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

std::vector<double> numbers_of(const std::string& bytes) {
  std::vector<double> numbers(bytes.size() / sizeof(double));
  if (!numbers.empty()) std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

}  // namespace

std::size_t program_at(const Plan& plan, std::int64_t position) {
  for (std::size_t i = 0; i < plan.programs.size(); ++i) {
    const auto& devices = plan.programs[i].devices;
    const bool has_it = std::find(devices.begin(), devices.end(), position) != devices.end();
    if (devices.empty() || has_it) return i;
  }
  throw std::logic_error(fmt::format("no program runs at position {}", position));
}

std::vector<std::vector<double>> exchange_numbers(Backend& backend,
                                                  const std::vector<double>& mine) {
  std::vector<std::vector<double>> all;
  for (const std::string& bytes : backend.exchange(bytes_of(mine)))
    all.push_back(numbers_of(bytes));
  return all;
}

std::optional<std::string> disagreement(Backend& backend, const std::string& error) {
  const std::vector<std::string> errors = backend.exchange(error);
  const auto is_error = [](const std::string& text) { return !text.empty(); };
  if (std::none_of(errors.begin(), errors.end(), is_error)) return std::nullopt;
  const auto lower = errors.begin() + backend.rank();
  return std::find(errors.begin(), lower, error) == lower ? error : "";
}

void check_same_plan(Backend& backend, const Plan& plan) {
  const std::string text = plan_to_json(plan).dump();
  const std::size_t digest = std::hash<std::string>()(text);
  const std::vector<std::string> plans =
      backend.exchange(fmt::format("{} {}", text.size(), digest));
  if (plans[static_cast<std::size_t>(backend.rank())] == plans.front()) return;
  throw InputError({fmt::format("rank {}", backend.rank()), ""},
                   "its plan is not that of rank 0: all processes need the same program, files and "
                   "flags");
}

}  // namespace shardsim
