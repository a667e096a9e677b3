#include "spmd/partitioner.hpp"

namespace shardsim::spmd {
void partition_reduce_window(Partitioner& p, const OpView& op) { p.replicated(op); }
void partition_select_and_scatter(Partitioner& p, const OpView& op) { p.replicated(op); }
}  // namespace shardsim::spmd
