#include "spmd/partitioner.hpp"

namespace shardsim::spmd {
void partition_reshape(Partitioner& p, const OpView& op) { p.replicated(op); }
void partition_slice(Partitioner& p, const OpView& op) { p.replicated(op); }
void partition_pad(Partitioner& p, const OpView& op) { p.replicated(op); }
void partition_concatenate(Partitioner& p, const OpView& op) { p.replicated(op); }
void partition_dynamic_slice(Partitioner& p, const OpView& op) { p.replicated(op); }
void partition_dynamic_update_slice(Partitioner& p, const OpView& op) { p.replicated(op); }
void partition_reverse(Partitioner& p, const OpView& op) { p.replicated(op); }
void partition_sort(Partitioner& p, const OpView& op) { p.replicated(op); }
void partition_reduce_window(Partitioner& p, const OpView& op) { p.replicated(op); }
void partition_select_and_scatter(Partitioner& p, const OpView& op) { p.replicated(op); }
void partition_convolution(Partitioner& p, const OpView& op) { p.replicated(op); }
void partition_custom_call(Partitioner& p, const OpView& op) { p.replicated(op); }
void partition_gather(Partitioner& p, const OpView& op) { p.replicated(op); }
void partition_scatter(Partitioner& p, const OpView& op) { p.replicated(op); }
}  // namespace shardsim::spmd
