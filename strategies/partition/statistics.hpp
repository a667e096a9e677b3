// Small tensors that an op needs over all of a factor that is split: the squares of a norm, the
// maximum and the sum of a softmax.
#pragma once

#include "strategies/layout/projection.hpp"
#include "strategies/partition/spmd_builder.hpp"

namespace shardsim {

// Appends an all-reduce over what splits the statistic's factors to the pass, if anything does; the
// item, which follows it, waits for it.
void reduce_statistic(SpmdBuilder& builder, const Op& op, const Statistic& statistic,
                      const FactorAxes& factors, Item& item, BlockPass& pass);

}  // namespace shardsim
