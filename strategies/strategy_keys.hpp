// The strategies by name and the keys that a strategy's object may have: the tables that the reader
// goes by (strategy.hpp) and that `shardsim help strategy` prints, so that they cannot differ.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardsim {

struct StrategyKey {
  std::string_view name;
  std::vector<std::string> choices;  // all values there are; empty: what `values` says
  std::string_view values;           // "true, false", "a number from 0 to 1024"
  std::string_view otherwise;        // when it is left out
  std::string_view meaning;
  bool of_recipes_alone = false;  // rule systems have keys of their own
};

struct Recipe {
  std::string_view name;
  std::string_view meaning;
  bool shards_parameters = false;  // over the shard axis
  bool splits_model = false;       // over the model axis
  bool has_replicas = false;       // of the shards, over another batch axis
  bool by_rules_alone = false;
};

[[nodiscard]] const std::vector<Recipe>& recipes();
[[nodiscard]] const Recipe* find_recipe(std::string_view name);  // nullptr: none
[[nodiscard]] const std::vector<StrategyKey>& strategy_keys();
// Those that the strategy may have, a rule system's own among them.
[[nodiscard]] std::vector<std::string> keys_of_strategy(std::string_view strategy);
// Of a key that has choices.
[[nodiscard]] const std::vector<std::string>& choices_of_key(std::string_view key);

// Recipes, rule systems and keys, for people.
[[nodiscard]] std::string strategy_keys_text();

}  // namespace shardsim
