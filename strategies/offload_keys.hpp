// What of a step lies on the host: the key "offload" of a strategy.
//
//   "offload": {"activations": {"layers": 20}}
//
//   key          values                                      when left out
//   activations  "cpu": of all layers; {"layers": n}: of     on the device, but for those that
//                the first n; {"modules": [...]}: what        "rematerialization" sends there
//                these read ("core_attn", "mlp", ...)
//   optimizer    "cpu": of DeepSpeed's ZeRO 2    on the device
//                and 3: state, gradients and work
//   parameters   "cpu": their parts, of          on the device
//                DeepSpeed's ZeRO 3
#pragma once

#include "base/json_reader.hpp"
#include "strategies/strategy.hpp"

namespace shardsim {

void read_offload(const JsonReader& strategy, Strategy& options);
[[nodiscard]] Json offload_to_json(const Runtime& runtime);  // null: nothing

}  // namespace shardsim
