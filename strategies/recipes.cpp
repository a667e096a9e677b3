#include <algorithm>

#include "strategies/strategy_keys.hpp"

namespace shardsim {

const std::vector<Recipe>& recipes() {
  static const std::vector<Recipe> all = {
      {"replicate", "parameters whole everywhere; the batch over the batch axes"},
      {"dp", "the same, by its other name"},
      {"fsdp", "ZeRO 3: parameters, gradients and optimizer state sharded over the shard axis",
       /*shards_parameters=*/true},
      {"hsdp", "fsdp over the shard axis within replicas over the other batch axes",
       /*shards_parameters=*/true, /*splits_model=*/false, /*has_replicas=*/true},
      {"tp", "Megatron's tensor parallelism: column and row splits over the model axis",
       /*shards_parameters=*/false, /*splits_model=*/true},
      {"fsdp+tp", "both", /*shards_parameters=*/true, /*splits_model=*/true},
      {"rules", "only what \"rules\" says; parameters that no rule matches are replicated",
       /*shards_parameters=*/false, /*splits_model=*/false, /*has_replicas=*/false,
       /*by_rules_alone=*/true},
  };
  return all;
}

const Recipe* find_recipe(std::string_view name) {
  const auto found = std::find_if(recipes().begin(), recipes().end(),
                                  [&](const Recipe& recipe) { return recipe.name == name; });
  return found != recipes().end() ? &*found : nullptr;
}

}  // namespace shardsim
