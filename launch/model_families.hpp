// A model as frameworks' arguments describe it, dimension by dimension, and as a config.json: the
// same facts under two vocabularies.
//
//   hidden 4096, layers 32, heads 32, kv_heads 8, width 14336, norm rms, positions rope, gated
//   <->  {"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, ...}
//
// Facts are called "model.hidden", "model.layers", ... The family is the first that has all that
// the facts say; what a family is by itself (its norms, biases, router) is a row of one table.
#pragma once

#include <string>
#include <vector>

#include "launch/facts.hpp"

namespace shardsim {

// Throws InputError where no family has it, with what the nearest lacks.
[[nodiscard]] Json config_of_facts(const Facts& facts);
// Of a config.json of one of these families, else InputError at `place`.
void add_model_facts(const Json& config, const Place& place, Facts& facts);

[[nodiscard]] std::vector<std::string> launched_families();

}  // namespace shardsim
