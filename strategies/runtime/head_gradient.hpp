// The gradient of the head's weights, which Megatron-Core can put off until a rank is through with
// its backward passes, when the others still have theirs (defer_embedding_wgrad_compute: the
// product of tensor_parallel/layers.py, drained by pipeline_parallel/schedules.py,
// finish_embedding_wgrad_compute, core 0.16.1). What it reads is kept till then: logits' gradients
// and the head's input, of every microbatch that waits.
#pragma once

#include <cstddef>
#include <optional>

#include "strategies/partition/spmd.hpp"
#include "strategies/strategy.hpp"

namespace shardsim {

// Item of the block's backward body, a product, that alone makes it; nothing: there is none.
[[nodiscard]] std::optional<std::size_t> head_gradient_item(const Workload& workload,
                                                            const BlockProgram& block);

// Throws InputError where it is to be put off and several kernels make it.
void check_head_gradient(const Strategy& strategy, const Workload& workload, const SpmdStep& step);

}  // namespace shardsim
