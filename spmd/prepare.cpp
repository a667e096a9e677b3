#include "spmd/prepare.hpp"

namespace shardsim::spmd {

stablehlo::Module prepare(const stablehlo::Module& program) { return program; }

}  // namespace shardsim::spmd
