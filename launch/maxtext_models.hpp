// MaxText's models: by model_name, or by the sizes that its decoder blocks have.
#pragma once

#include "launch/facts.hpp"

namespace shardsim {

// As an experiment has a model. Throws InputError at the key for a name or a block that is not
// known. Of sizes they are "model." facts afterwards, too.
[[nodiscard]] Json maxtext_model(Facts& facts);
// Of a model as the experiment has it, and its config.json.
void add_maxtext_model_facts(const Json& model, const Json& config, const Place& place,
                             Facts& facts);

}  // namespace shardsim
