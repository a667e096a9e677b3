// Mixtures whose experts get more rows in some layers than in others: layers of one kind become as
// many kinds as they have loads, so that each is planned, and priced, as what it has to do.
//
// Example: 4 layers of one kind, {1: 1.5, 3: 1.5} of rows_of_layer: layers 0 and 2 stay, 1 and 3
// are a second kind.
#pragma once

#include "workloads/models/build.hpp"
#include "workloads/models/spec.hpp"

namespace shardsim::models {

// Layers count from 0 in each stack. Of multi-token prediction, which has no numbers among them,
// and of layers that are not listed, loads stay as they are.
void set_layer_loads(ModelSpec& spec, const ExpertExchange& exchange);

}  // namespace shardsim::models
