// MaxText's models: by model_name, or by the sizes that its decoder blocks have.
#pragma once

#include <optional>

#include <string_view>
#include <vector>

#include "launch/facts.hpp"

namespace shardsim {

// configs/models of MaxText: what each has otherwise than base.yml.
struct MaxtextModel {
  std::string_view name;
  std::string_view of_block;  // JSON, an object: what all models of its decoder block have
  std::string_view keys;      // and what it has beside that
};
[[nodiscard]] const std::vector<MaxtextModel>& maxtext_named_models();

// As an experiment has a model. Throws InputError at the key for a name or a block that is not
// known. Of sizes they are "model." facts afterwards, too.
[[nodiscard]] Json maxtext_model(Facts& facts);
// Of a model as the experiment has it, and its config.json.
void add_maxtext_model_facts(const Json& model, const Json& config, const Place& place,
                             Facts& facts);

// "logical_axis_rules" or "custom_mesh_and_rule" on that mesh, where they come to something else
// than what the strategy "xla" does; without rules of activations. Throws InputError for rules that
// split batch or sequence over other axes, and with stages or a split sequence for all others.
[[nodiscard]] std::optional<Json> maxtext_rules(const Facts& facts, const Json& mesh, bool routed);

}  // namespace shardsim
