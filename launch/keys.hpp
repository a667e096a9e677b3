// The keys of a framework's file, as tables that both directions go by: what a key says of an
// experiment, that it changes no cost, or that what it asks for cannot be simulated.
//
//   {"micro-batch-size", "workload.microbatch", KeyKind::integer}
//   {"optimizer", "workload.optimizer", KeyKind::text, R"("adamw")", {{"adam", R"("adamw")"}}}
//
// Whatever a file says is one of these; any other key is an error with the nearest known one.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launch/facts.hpp"

namespace shardsim {

// A key as a file has it: with sections, "parallelism.tensor_parallel_degree".
struct Entry {
  std::string key;
  std::string said;  // as messages name it: "--num-layers"
  OwnedJson value;
  Place place;
};

enum class KeyKind : std::uint8_t { integer, number, flag, text, any };

struct Key {
  std::string_view name;
  std::string_view fact;
  KeyKind kind = KeyKind::text;
  std::string_view otherwise = {};  // JSON: the framework's default; empty: none
  // Theirs and, as JSON, ours; no others are known, where there are any.
  std::vector<std::pair<std::string_view, std::string_view>> words = {};
  bool other_spelling = false;  // read, never written
};

struct HarmlessKeys {
  std::string_view why;
  std::vector<std::string_view> names;  // "scheduler.*": all below it; "grpo-*": all that begin so
};

struct RefusedKey {
  std::string_view name;
  std::string_view harmless;  // JSON, a list: values that ask for nothing
  std::string_view why;
  bool of_model = false;  // asks for nothing where the model is given beside the file
};

struct KeyTable {
  const std::vector<Key>* used = nullptr;
  const std::vector<HarmlessKeys>* harmless = nullptr;
  const std::vector<RefusedKey>* refused = nullptr;
};

enum class KeyEffect : std::uint8_t { used, harmless, refused, left_out };
[[nodiscard]] std::string_view name_of(KeyEffect effect);

struct KeyUse {
  Entry entry;
  KeyEffect effect = KeyEffect::used;
  std::string what;  // the fact, or why
};

struct SortedKeys {
  Facts facts;
  std::vector<KeyUse> uses;
};

// With the defaults of keys that the file does not have. `leave_out`: keys that are taken as not
// there. Throws InputError for unknown keys and values; for refused keys unless `lists_refused`.
[[nodiscard]] SortedKeys sort_keys(const std::vector<Entry>& entries, const KeyTable& table,
                                   const std::vector<std::string>& leave_out, const Place& whole,
                                   bool lists_refused, bool has_model = false);

// What an object of keys of the table says, as if it were the framework's default: of facts that
// are given only where `over_given`.
void set_defaults(std::string_view object, const KeyTable& table, bool over_given, Facts& facts);

struct WrittenKey {
  std::string key;
  OwnedJson value;
};
// What of the facts differs from the framework's defaults, in the table's order. Throws InputError
// for a fact that no key says, or no word of a key.
[[nodiscard]] std::vector<WrittenKey> keys_of_facts(const Facts& facts, const KeyTable& table);

}  // namespace shardsim
