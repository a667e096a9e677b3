// Experts of a mixture, dealt out over devices: each has some of them, and gets the rows of the
// tokens that visit these from the devices that hold the tokens.
//
// Example, Megatron-Core's dp 8, tp 2 with experts over 8 devices, each expert whole on one of them
// (expert model parallel 8, expert tensor parallel 1):
//   tokens over      [dp, tp]         with sequence parallelism, 16 devices
//   parallel         [dp:(2)4, tp]    8 neighbours, with 1/8 of the experts each
//   data             [dp:(1)2]        2 that have the same experts
// With experts over 4 devices and each split over tp: parallel [dp:(2)4], tensor [tp], data
// [dp:(1)2]; rows are gathered over tp before the experts and scattered after them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sharding/sharding.hpp"
#include "strategies/layout/expert_shares.hpp"
#include "workloads/graph/op_graph.hpp"
#include "workloads/models/build.hpp"

namespace shardsim {

// How rows travel.
enum class Dispatch : std::uint8_t {
  all_to_all,  // a copy for each expert that a token visits
  all_gather,  // every token to every device; what they make of it is summed
  deepep,      // a copy for each device that has some of these (DeepEP)
  hybridep     // likewise (DeepEP's hybrid kernels)
};

// How devices learn how many rows come from whom.
enum class ExpertCounts : std::uint8_t {
  none,
  gathered,  // all have the counts of all (Megatron-Core)
  exchanged  // each hears its own (PyTorch)
};

// Losses that keep the routing even, each of which needs counts of all devices that have something
// of what it is of (Megatron-Core's moe_router_load_balancing_type).
enum class AuxiliaryLoss : std::uint8_t {
  batch,      // of a microbatch's tokens, over the model and context axes (aux_loss)
  sequences,  // of each sequence apart, over the same (seq_aux_loss)
  global      // over the axes of the batch as well (global_aux_loss)
};

struct ExpertLayout {
  AxisList parallel;     // experts are dealt out over
  bool is_told = false;  // "parallel" is more than one, which only mixtures have a use for
  AxisList tensor;       // each expert's width is split over
  AxisList data;         // devices that have the same part of the same experts
  AxisList tokens;       // all that hold different tokens
  AxisList balanced;     // over which a sequence's counts of rows are summed
  Dispatch dispatch = Dispatch::all_to_all;
  ExpertCounts counts = ExpertCounts::exchanged;
  std::vector<AuxiliaryLoss> auxiliary_losses = {};
  bool moves_biases = false;  // of routers, where a model has them, by the counts of a step
  bool holds_rows = false;    // the module's variables hold them (partition/rows_in_scope.hpp)
  bool grouped = true;  // products of all experts are one kernel; false: one expert after the other
  bool shards_first = false;  // shards of parameters are of whole experts, padded where these are
                              // fewer than devices (fully_shard); false: within each then
  double skew = 1;            // rows of the busiest device, over an even share, in all layers
  ExpertShares shares{};      // or what each expert gets, layer by layer
  std::optional<double> capacity{};  // places of an expert, over an even share
  bool pads = false;          // each expert gets as many rows as it has places: nobody counts
  ExpertExchange exchange{};  // what this comes to
  friend bool operator==(const ExpertLayout&, const ExpertLayout&) = default;
};

// The minor part of `axes` that has so many devices, and what is left of them; nothing where axes
// cannot be cut so.
struct CutAxes {
  AxisList minor;
  AxisList rest;
};
[[nodiscard]] std::optional<CutAxes> cut_minor(const AxisList& axes, std::int64_t devices);

// Of rows by expert, [experts, slots, ...], as they are sent, and as experts read and make them:
// gathered over the devices that each is split over.
[[nodiscard]] Sharding sent_rows(const ExpertLayout& experts, std::size_t rank);
[[nodiscard]] Sharding computed_rows(const ExpertLayout& experts, std::size_t rank);

// Experts of a block's routers that have a bias which is moved by their load.
[[nodiscard]] std::int64_t biased_experts(const Workload& workload, std::int32_t block);

// Throws InputError at the strategy's "experts" where it deals out those of a model without any
// (as Megatron-Core's TransformerConfig does: num_moe_experts must be given).
void check_has_experts(const Workload& workload, const ExpertLayout& experts,
                       const Place& strategy);

// Throws InputError at the strategy's "balance": a layer with experts has no shares or not as many,
// or a layer with shares no experts. Layers of multi-token prediction are taken as even.
void check_shares(const Workload& workload, const ExpertLayout& experts, const Place& strategy);

// Is it a parameter of experts that rows are exchanged with?
[[nodiscard]] bool is_of_routed_experts(const Workload& workload, TensorId parameter);

}  // namespace shardsim
