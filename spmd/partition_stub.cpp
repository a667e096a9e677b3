#include "spmd/partitioner.hpp"

namespace shardsim::spmd {
void partition_convolution(Partitioner& p, const OpView& op) { p.replicated(op); }
}  // namespace shardsim::spmd
