// What of a step's activations is kept, as an experiment says it:
//
//   "none" | "full" | "selective"
//   {"save": ["q", "gate_proj$"]}      names as MaxText gives them, or regular expressions on names
//                                      of activations
//   {"save": [...], "offload": ["k"]}  and those that are kept on the host
//   {"policy": "save_qkv_proj"}        MaxText's and JAX's (workloads/step/saved_names.hpp)
//   {"modules": ["mlp", "layernorm"]}  Megatron's --recompute-modules
//   {"layers": 4, "method": "block"}   Megatron's --recompute-method: the first 4 layers of each
//                                      chunk are repeated; "uniform": each one ("layers": 1)
//   {"every": 2}                       every second layer is repeated (torchtitan)
//
#pragma once

#include "base/json_reader.hpp"
#include "workloads/step/rematerialization.hpp"

namespace shardsim {

[[nodiscard]] Rematerialization read_rematerialization(const JsonReader& json);
[[nodiscard]] Json rematerialization_to_json(const Rematerialization& rematerialization);

}  // namespace shardsim
