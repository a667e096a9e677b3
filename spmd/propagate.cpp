#include "spmd/propagate.hpp"

namespace shardsim::spmd {

void propagate(stablehlo::Module& /*program*/) {}

}  // namespace shardsim::spmd
