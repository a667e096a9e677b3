#include "workloads/models/config_reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "base/json.hpp"
#include "workloads/models/harmless_keys.hpp"

namespace shardsim {
namespace {

constexpr std::int64_t max_size = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t most_layers = 10'000;

bool is_harmless(const std::string& key) {
  const std::vector<HarmlessKey>& keys = harmless_keys();
  return std::any_of(keys.begin(), keys.end(), [&](const auto& known) { return known.key == key; });
}

}  // namespace

ConfigReader::ConfigReader(const JsonReader& json, const std::vector<std::string>& known)
    : json_(json) {
  for (const auto& [key, value] : json.members()) {
    if (std::find(known.begin(), known.end(), key) != known.end() || is_harmless(key)) continue;
    const std::string meant = closest(key, known);
    if (!meant.empty() && !json.json().contains(meant)) {
      json.fail(fmt::format("unknown key \"{}\"", key), meant);
    }
    value.fail(
        "unknown key: it is neither used nor known to change nothing; leave it out if it does not "
        "matter");
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

std::int64_t ConfigReader::integer_or(std::string_view key, std::int64_t otherwise) const {
  const auto value = json_.find(key);
  return value ? value->integer(0, max_size) : otherwise;
}

bool ConfigReader::flag_or(std::string_view key, bool otherwise) const {
  const auto value = json_.find(key);
  return value ? value->boolean() : otherwise;
}

double ConfigReader::rate_or(std::string_view key, double otherwise) const {
  const auto value = json_.find(key);
  if (!value) return otherwise;
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

std::string ConfigReader::either(std::string key, std::string_view alias) const {
  const auto other = json_.find(alias);
  if (!other) return key;
  if (json_.find(key)) other->fail(fmt::format("is another name for \"{}\", which is there", key));
  return std::string(alias);
}

void ConfigReader::refuse_true(std::string_view key, std::string_view advice) const {
  const auto value = json_.find(key);
  if (value && value->boolean()) value->fail(fmt::format("true is not supported{}", advice));
}

void ConfigReader::refuse_set(std::string_view key, std::string_view remark) const {
  if (const auto value = json_.find(key)) value->fail(fmt::format("is not supported{}", remark));
}

void ConfigReader::refuse_quantized(const std::vector<std::string>& widened) const {
  const auto value = json_.find("quantization_config");
  if (!value) return;
  const auto method = value->find("quant_method");
  if (method && std::find(widened.begin(), widened.end(), method->string()) != widened.end()) {
    return;
  }
  value->fail(
      "is not supported: it is how the checkpoint stores its weights; without the key the step is "
      "in the types of \"workload.precision\"");
}

void ConfigReader::refuse_entries(std::string_view key) const {
  const auto value = json_.find(key);
  if (value && !value->json().empty()) value->fail("is not supported");
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
                                   std::string_view divisor_key, std::int64_t divisor,
                                   std::string_view remark) const {
  if (dividend % divisor == 0) return;
  json_.fail(fmt::format("{} {} is not a multiple of {} {}{}", dividend_key, dividend, divisor_key,
                         divisor, remark));
}

const std::vector<std::string>& common_config_keys() {
  static const std::vector<std::string> keys = {"architectures",       "model_type",
                                                "_class_name",         "vocab_size",
                                                "tie_word_embeddings", "quantization_config",
                                                "compression_config",  "gradient_checkpointing",
                                                "output_attentions",   "output_hidden_states",
                                                "is_encoder_decoder",  "add_cross_attention",
                                                "pruned_heads",        "attn_implementation",
                                                "_attn_implementation"};
  return keys;
}

void refuse_common(const ConfigReader& config) {
  config.refuse_quantized({"fp8", "mxfp4"});
  config.refuse_set("compression_config");
  config.refuse_true("gradient_checkpointing",
                     " here: the workload says it, \"rematerialization\": \"full\"");
  config.refuse_true("output_attentions");
  config.refuse_true("output_hidden_states");
  config.refuse_true("add_cross_attention");
  config.refuse_entries("pruned_heads");
  // Attention is one kernel that stores no scores.
  for (const char* key : {"attn_implementation", "_attn_implementation"}) {
    config.require(key, {"eager", "sdpa", "flash_attention_2", "flash_attention_3"});
  }
}

}  // namespace shardsim
