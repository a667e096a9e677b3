// Reading a config.json as transformers does: a key under any of its spellings, its class's default
// where it is absent, and one clear error for everything else.
//
//   Config c(json);
//   c.size("hidden_size");                   // needed: from 1 to 2^24
//   c.size("n_embd|hidden_size", 768);       // two spellings, a default
//   c.optional_size("q_lora_rank", 1536);    // null says that there is none; absent means 1536
//   c.flag("tie_word_embeddings", false);
//
// Sizes that every file states have no default at the top; in a nested text_config they have that
// of the class, as the hub's files leave them out there (nested_defaults.hpp).
// Errors: InputError with file and place: missing, wrong type, out of range, not divisible.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_reader.hpp"

namespace shardsim::models {

// What a family's reader asked a file for: keys that are not among these say nothing to it.
struct NestedKeys;
struct AskedKeys {
  std::vector<std::string> keys;  // with all spellings: "n_embd|hidden_size"
  std::list<NestedKeys> nested;   // of objects that were looked into; they stay where they are
};

struct NestedKeys {
  std::string key;
  AskedKeys asked;
};

class Config {
 public:
  // `asked` collects what is asked of the file; with it, spellings of one key that are
  // both there and differ are an error.
  explicit Config(JsonReader json, bool nested = false, AskedKeys* asked = nullptr)
      : json_(std::move(json)), nested_(nested), asked_(asked) {}

  [[nodiscard]] const JsonReader& json() const { return json_; }
  // Whether one of the spellings is there and not null.
  [[nodiscard]] bool given(std::string_view keys) const { return find(keys).has_value(); }

  [[nodiscard]] std::int64_t size(std::string_view keys) const;
  [[nodiscard]] std::int64_t size(std::string_view keys, std::int64_t otherwise) const;
  // As size(keys); in a nested configuration as size(keys, otherwise).
  [[nodiscard]] std::int64_t needed(std::string_view keys, std::int64_t otherwise) const;
  [[nodiscard]] std::optional<std::int64_t> optional_size(
      std::string_view keys, std::optional<std::int64_t> otherwise) const;
  [[nodiscard]] std::int64_t count(std::string_view keys, std::int64_t otherwise) const;  // >= 0
  [[nodiscard]] std::int64_t integer(std::string_view keys, std::int64_t otherwise) const;
  // From 1 to 10,000; needed, unless nested.
  [[nodiscard]] std::int64_t layers(std::string_view keys, std::int64_t otherwise) const;
  [[nodiscard]] bool flag(std::string_view keys, bool otherwise) const;
  [[nodiscard]] double rate(std::string_view keys, double otherwise) const;  // 0 <= rate < 1
  [[nodiscard]] double number(std::string_view keys, double otherwise) const;
  [[nodiscard]] double cap(std::string_view keys, double otherwise) const;  // > 0; null is 0: none
  [[nodiscard]] double ratio(std::string_view keys, double otherwise) const;  // 0 < ratio <= 1,000
  [[nodiscard]] std::string text(std::string_view keys, std::string_view otherwise) const;
  [[nodiscard]] std::string choice(std::string_view keys, std::string_view otherwise,
                                   const std::vector<std::string>& choices) const;
  [[nodiscard]] std::string activation(std::string_view keys, std::string_view otherwise) const;
  // A list of strings or of integers; empty where it is absent.
  [[nodiscard]] std::vector<std::string> texts(std::string_view keys) const;
  [[nodiscard]] std::vector<std::int64_t> integers(std::string_view keys) const;
  [[nodiscard]] std::vector<std::int64_t> sizes(std::string_view keys,
                                                std::vector<std::int64_t> otherwise) const;
  [[nodiscard]] std::optional<Config> sub(std::string_view keys) const;  // an object
  // Keys that change nothing of this family: what they say others say, or it does not run.
  void pass_over(std::initializer_list<std::string_view> keys) const;
  // A share, above 0 and at most 1: a key of rope_parameters or, as older files have it, of
  // rope_scaling or of the top.
  [[nodiscard]] double rotary_number(std::string_view key, double otherwise) const;
  // The same where rope_parameters has an object for each type of layer, "full_attention", ...
  [[nodiscard]] double rotary_number(std::string_view type, std::string_view key,
                                     double otherwise) const;

  // a / b, which `b_keys` names; an error where it does not divide.
  [[nodiscard]] std::int64_t divided(std::string_view a_keys, std::int64_t a,
                                     std::string_view b_keys, std::int64_t b) const;
  [[noreturn]] void fail(std::string_view keys, std::string_view message) const;

 private:
  [[nodiscard]] std::optional<JsonReader> find(std::string_view keys) const;
  void ask(std::string_view keys) const;

  JsonReader json_;
  bool nested_;
  AskedKeys* asked_;
  const Json* defaults_ = nullptr;  // of a nested class (nested_defaults.hpp)
};

}  // namespace shardsim::models
