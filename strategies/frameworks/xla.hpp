// A JAX program under XLA with the usual axes (MaxText's): parameters, gradients and optimizer
// state in shards over the shard axis, split over the model axis where there is one, gathered and
// reduced tensor by tensor. What XLA rewrites of it (fused kernels, collective matmuls, hoisted
// casts) is not modelled; a program of one's own says more (--program).
#pragma once

#include "strategies/frameworks/framework.hpp"

namespace shardsim {

[[nodiscard]] Framework xla_framework();

}  // namespace shardsim
