// The key "experts" of a strategy: how mixtures of experts are dealt out.
//
//   "experts": {"parallel": 8, "tensor_parallel": 1, "dispatch": "all-to-all"}
//
//   key              values                            when left out
//   parallel         devices that experts are dealt     1; those of the mesh's axis for experts
//                    out over: neighbours among those   where it has one
//                    that hold different tokens
//   tensor_parallel  devices that each expert is        1; megatron's is that of all else
//                    split over, of the model axis
//   dispatch         all-to-all, deepep, hybridep       all-to-all
//   counts           none, gathered, exchanged          exchanged; gathered of megatron
//   weights          stay, travel                       stay; travel of megatron
//   auxiliary_loss   true (batch), false, "batch",      false; true of megatron
//                    "sequences", "global", or a list
//   moves_biases     true, false                        false; true of megatron: biases of routers
//                                                       are moved by a step's counts of rows
//   holds_rows       true, false                        false; true of megatron: rows that leave
//                                                       and arrive stay until the module is through
//   shared_first     true, false                        false; true of megatron
//   shared_beside    true, false                        false: experts that all tokens visit run
//                                                       while rows travel (Megatron-Core's
//                                                       moe_shared_expert_overlap)
//   grouped          true, false                        true: all experts' products are one kernel
//   router_dtype     bf16, fp32, null               null: as the model's own class computes. What
//                                                   routers compute in, and weights that travel
//                                                   (Megatron-Core's moe_router_dtype)
//   shard_dimension  fitting, first                fitting: of shards of a parameter, the experts
//                                                  or, where these are fewer than devices, within
//                                                  each; first: padded (fully_shard)
//   capacity_factor  a number, null                     null: as many rows as are routed
//   pad_to_capacity  true, false                        true: where there is a capacity factor
//   balance          even, {"skew": number},            even
//                    {"file": name}, {"shares": ...}
//
// A capacity factor c: each expert has places for c times the rows of an even routing, padded to
// that (Megatron-Core's moe_pad_expert_input_to_capacity, XLA's programs) or not; rows without a
// place are dropped. A skew s: the busiest device gets s times the rows of an even routing; all are
// planned as if they were it. A file, or shares: what each expert gets, layer by layer
// (layout/expert_shares.hpp).
#pragma once

#include "base/json_reader.hpp"
#include "strategies/layout/axis_roles.hpp"
#include "strategies/strategy.hpp"

namespace shardsim {

// Over what a framework has filled in, once the strategy's axes are known. Throws InputError: an
// unknown key or value, devices that cannot be cut from the axes, experts over devices that hold
// the same tokens.
void read_expert_keys(const JsonReader& strategy, const Mesh& mesh, const AxisRoles& roles,
                      Strategy& options);
// As a rule system's rules deal them out: over those of `axes` that split the batch, too. Counts of
// rows are gathered, as MaxText does (layers/moe.py, all_shards_group_sizes).
void deal_out_by_system(const std::vector<std::string>& axes, const Mesh& mesh, Strategy& options);
// Null: they are not dealt out.
[[nodiscard]] Json expert_keys_to_json(const std::optional<ExpertLayout>& experts);

}  // namespace shardsim
