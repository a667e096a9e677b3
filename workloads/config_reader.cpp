#include "workloads/config_reader.hpp"

#include "base/json.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

namespace shardsim {
namespace {

constexpr std::int64_t max_size = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t most_layers = 10'000;

// Keys of Hugging Face configurations that say nothing about the op graph and come near to some
// that do.
const std::vector<std::string> harmless_keys = {"bos_token_id", "eos_token_id", "pad_token_id",
                                                "n_ctx",        "rope_theta",   "rope_scaling",
                                                "use_cache"};

}  // namespace

ConfigReader::ConfigReader(const JsonReader& json, const std::vector<std::string>& known)
    : json_(json) {
  for (const auto& [key, value] : json.members()) {
    const auto is_in = [&key = key](const std::vector<std::string>& keys) {
      return std::find(keys.begin(), keys.end(), key) != keys.end();
    };
    if (is_in(known) || is_in(harmless_keys)) continue;
    const std::string meant = closest(key, known);
    if (!meant.empty() && !json.json().contains(meant)) {
      json.fail(fmt::format("unknown key \"{}\"", key), meant);
    }
  }
}

std::int64_t ConfigReader::size(std::string_view key) const {
  return json_.at(key).integer(1, max_size);
}

std::int64_t ConfigReader::layers(std::string_view key) const {
  return json_.at(key).integer(1, most_layers);
}

std::int64_t ConfigReader::size_or(std::string_view key, std::int64_t otherwise) const {
  const auto value = json_.find(key);
  return value ? value->integer(1, max_size) : otherwise;
}

bool ConfigReader::flag_or(std::string_view key, bool otherwise) const {
  const auto value = json_.find(key);
  return value ? value->boolean() : otherwise;
}

double ConfigReader::rate_or_zero(std::string_view key) const {
  const auto value = json_.find(key);
  if (!value) return 0;
  const double rate = value->number();
  if (!(rate >= 0 && rate < 1)) value->fail("a rate must be at least 0 and below 1");
  return rate;
}

std::pair<std::int64_t, std::int64_t> ConfigReader::size_pair(std::string_view key) const {
  const std::vector<JsonReader> sizes = json_.at(key).elements();
  if (sizes.size() != 2) {
    json_.at(key).fail(fmt::format("expected two sizes, found {}", sizes.size()));
  }
  return {sizes[0].integer(1, max_size), sizes[1].integer(1, max_size)};
}

void ConfigReader::refuse_true(std::string_view key) const {
  const auto value = json_.find(key);
  if (value && value->boolean()) value->fail("true is not supported");
}

void ConfigReader::refuse_set(std::string_view key) const {
  if (const auto value = json_.find(key)) value->fail("is not supported");
}

void ConfigReader::refuse_nonzero(std::string_view key) const {
  const auto value = json_.find(key);
  if (value && value->number() != 0) value->fail("is not supported");
}

void ConfigReader::require(std::string_view key, const std::vector<std::string>& supported) const {
  const auto value = json_.find(key);
  if (!value) return;
  const std::string text = value->string();
  if (std::find(supported.begin(), supported.end(), text) != supported.end()) return;
  value->fail(
      fmt::format("\"{}\" is not supported; supported are {}", text, fmt::join(supported, ", ")));
}

void ConfigReader::require_divides(std::string_view dividend_key, std::int64_t dividend,
                                   std::string_view divisor_key, std::int64_t divisor) const {
  if (dividend % divisor == 0) return;
  json_.fail(fmt::format("{} {} is not a multiple of {} {}", dividend_key, dividend, divisor_key,
                         divisor));
}

}  // namespace shardsim
