// What the readers of model descriptions share: sizes within bounds, and a refusal of every setting
// that would change the op graph in a way that is not built.
//
// A config.json holds many keys that say nothing about the graph (dtype, token ids, initializer):
// those of harmless_keys.hpp are passed over. Any other that the model's reader does not look at is
// an error, nearly one of those that matter a typo.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_reader.hpp"

namespace shardsim {

class ConfigReader {
 public:
  // `known`: every key that the model's reader looks at. Throws InputError for keys that are
  // neither known nor harmless.
  ConfigReader(const JsonReader& json, const std::vector<std::string>& known);

  [[nodiscard]] const JsonReader& json() const { return json_; }

  // From 1 to 2^31 - 1.
  [[nodiscard]] std::int64_t size(std::string_view key) const;
  [[nodiscard]] std::int64_t size_or(std::string_view key, std::int64_t otherwise) const;
  [[nodiscard]] std::int64_t integer_or(std::string_view key,
                                        std::int64_t otherwise) const;  // >= 0
  // Of a repeated block: from 1 to 10,000, which the deepest networks have that were ever trained
  // (Xiao et al., Dynamical Isometry, 2018). Work grows with them, and more is a mistake.
  [[nodiscard]] std::int64_t layers(std::string_view key) const;
  [[nodiscard]] bool flag_or(std::string_view key, bool otherwise) const;
  [[nodiscard]] double rate_or(std::string_view key, double otherwise) const;  // 0 <= rate < 1
  // A list of two sizes.
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> size_pair(std::string_view key) const;

  // `key`, or the other name for the same where the file has that. Throws when it has both.
  [[nodiscard]] std::string either(std::string key, std::string_view alias) const;

  // Throws when the key is present and true; likewise when it is present and not null; a list or an
  // object that is not empty; a number that is not 0. `advice` follows "true is not supported".
  void refuse_true(std::string_view key, std::string_view advice = {}) const;
  void refuse_set(std::string_view key, std::string_view remark = {}) const;
  // Weights that are not stored in one of the formats that are widened to be trained.
  void refuse_quantized(const std::vector<std::string>& widened) const;
  void refuse_entries(std::string_view key) const;
  void refuse_nonzero(std::string_view key) const;
  // Throws when the key is present and not one of `supported`.
  void require(std::string_view key, const std::vector<std::string>& supported) const;
  // `remark` follows the divisor: where it is from, if the file does not say it.
  void require_divides(std::string_view dividend_key, std::int64_t dividend,
                       std::string_view divisor_key, std::int64_t divisor,
                       std::string_view remark = {}) const;

 private:
  JsonReader json_;
};

// Keys that any config.json may have and that change what a step costs, with the refusal of each
// value that is not built: quantization, output of hidden states, eager attention, ...
[[nodiscard]] const std::vector<std::string>& common_config_keys();
void refuse_common(const ConfigReader& config);

}  // namespace shardsim
