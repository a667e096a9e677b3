// Which factor of an op every mesh axis splits, and what follows for the op's results.
//
// The tensors of an op say what they are split over. Where they agree, that is it. Where two say
// that one axis splits different factors, every choice is priced by the bytes a device has to send
// to get the operands there and the results back, and the cheapest is taken (the first of equals).
// Parameters and their gradients stay where the strategy put them if any choice allows it: their
// bytes weigh first.
// A factor in Op::whole is never split.
//
// Example, Megatron with sequence parallelism, down_proj in backward: the output's gradient is
// split over model along the sequence, the weight along ffn, and the input's gradient should be
// split along ffn. Taking ffn costs one all-gather of the output's gradient; taking the sequence
// costs gathering the weight and an all-to-all. The first is cheaper.
//
// Example, a look-up in a table that is split over data along vocab, of tokens whose batch is split
// over data: taking the batch gathers the table, taking vocab leaves the parameter where it is, so
// vocab is taken. The token numbers are gathered and the rows are partial sums, which a
// reduce-scatter brings back to the batch's split. In the backward pass the rows' gradients are
// gathered, and what is added up is the shard's gradient, complete.
#pragma once

#include <vector>

#include "strategies/layout/projection.hpp"
#include "strategies/layout/tensor_shardings.hpp"
#include "workloads/graph/op_graph.hpp"

namespace shardsim {

[[nodiscard]] FactorAxes choose_factors(const Workload& workload, const Op& op,
                                        const TensorShardings& shardings);

// Axes over which a result with `dims` is a partial sum: those on factors that it does not have and
// that no Statistic takes care of.
// A linear op passes on what all its operands have in common instead; see partial_sums.hpp.
[[nodiscard]] AxisList summed_axes(const Op& op, const std::vector<Dim>& dims,
                                   const FactorAxes& factors);

}  // namespace shardsim
