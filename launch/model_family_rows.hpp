// What families of models are by themselves, and by which keys of config.json they say the rest.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

namespace shardsim {

struct ModelKey {
  std::string_view key;
  std::string_view fact;
  std::string_view otherwise = {};  // JSON: of the class, where a file leaves it out
  std::string_view per = {};        // the key counts so much of the fact: shared experts, not width
};

struct FamilyRow {
  std::string_view model_type;
  std::string_view architecture;
  std::vector<std::pair<std::string_view, std::string_view>> is;  // fact, JSON
  std::vector<ModelKey> keys;
  std::vector<std::pair<std::string_view, std::string_view>> constants;  // key, JSON
  bool may_lack_experts = false;
};

// What a model is unless the facts or the family say otherwise: fact, JSON.
[[nodiscard]] const std::vector<std::pair<std::string_view, std::string_view>>& neutral_facts();
// The first that has all that the facts say is meant.
[[nodiscard]] const std::vector<FamilyRow>& family_rows();

}  // namespace shardsim
