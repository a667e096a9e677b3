// Rows of tokens travel to experts and back beside the work of another microbatch: Megatron-Core's
// overlap_moe_expert_parallel_comm, DeepSeek's DualPipe. Where the schedule overlaps a forward pass
// with a backward pass (Action::with_next), their layers are issued in turn, i-th with i-th:
//
//   exchanges  combine of B | dispatch of F, dispatch of B         | combine of F
//   compute    attention F  | experts B, their weights, experts F  | attention B
//
// A layer's pass is cut at the exchanges of its rows:
//
//   before   from its input to what is sent: attention, norm, router (backward: the combination)
//   first    rows leave, with what says how many they are
//   between  the experts
//   second   rows come back
//   behind   the combination and the residual (backward: router, norm, attention)
//
// Exchanges run on a stream of their own and begin when all of the pass that was issued before them
// is through, as nodes of Megatron's plan wait for each other's event. Gradients of weights belong
// to their part; with late_weights they come behind what the same part makes for the layer before,
// and rows do not wait for them (delay_wgrad_compute).
//
// What differs from Megatron: rows are permuted and combined on the compute stream, not on that of
// exchanges; a layer without experts is not cut; multi-token prediction is part of the head's pass,
// which is not overlapped.
//
// Source: megatron/core/models/common/model_chunk_schedule_plan.py,
// TransformerLayerSchedulePlan.run (core 0.16.1).
#pragma once

#include <cstddef>
#include <optional>

#include "strategies/partition/spmd.hpp"
#include "strategies/strategy.hpp"
#include "workloads/step/step.hpp"

namespace shardsim {

[[nodiscard]] bool is_exchange(const Item& item);

// Items of a body, from one up to another.
struct ItemRange {
  std::size_t first = 0, end = 0;
};
struct ExchangeCuts {
  ItemRange first, second;
};
// Nothing where the pass has not two exchanges, but for those of what it computes again.
[[nodiscard]] std::optional<ExchangeCuts> exchange_cuts(const BlockPass& pass);

// Throws InputError for what Megatron-Core refuses beside it (transformer_config.py) and for what
// this version does not plan: at the strategy's "overlap", or the key of this.
void check_exchange_overlap(const Strategy& strategy, const Step& step);

}  // namespace shardsim
