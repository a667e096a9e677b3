// The key "context" of a strategy: how attention reads a sequence that is split over devices.
//
//   "context": {"method": "ring", "balanced": true}
//
//   key       values                              when left out
//   method    all-gather, ring, all-to-all        all-gather; ring of megatron, fsdp1, fsdp2, ddp
//   balanced  true, false                         true: a causal mask leaves all devices as much
//   keeps     parts, gathered                     parts; gathered of torchtitan: for backward
//   of a ring:
//   rotation  messages, all-gather                messages: how keys and values of parts come round
//   gradients compute, fp32                       compute: the type that theirs are added up in
#pragma once

#include "base/json_reader.hpp"
#include "strategies/layout/context_layout.hpp"

namespace shardsim {

// Over what a framework has filled in. Throws InputError: an unknown key or value.
void read_context(const JsonReader& strategy, ContextLayout& context);
[[nodiscard]] Json context_to_json(const ContextLayout& context);

}  // namespace shardsim
