// A layout as JSON, printed and read again: what a strategy came to, and what may be written by
// hand in its place.
//
//   "strategy": {"name": "fsdp", "layout": {
//     "parameters": {"model.layers.{0-31}.self_attn.q_proj.weight":
//                      {"stored": ["fsdp", null], "compute": [null, null], "look_up": [null, null],
//                       "gradient": ["fsdp", null], "optimizer": ["fsdp", null],
//                       "by": "fsdp: dimension 0 over fsdp"}, ...},
//     "pinned": {"input_ids": ["fsdp", null]}, "entering": {}, "leaving": {},
//     "data_axes": ["fsdp"], "sequence_axes": [], "model_axes": [], "sequence_parallel": false,
//     "zero_stage": 0, "warnings": []}}
//
// A tensor has the name that `plan` prints, with the numbers of its layers. A sharding has an entry
// for each dimension: null, an axis, a list of axes major to minor, or {"axes": [...], "blocks": 3}
// where a dimension is so many parts that are split each; "fsdp:(1)2" is part of an axis. Of a
// parameter "stored" has to be said; "compute" is stored without the data axes, "look_up" is
// compute, "gradient" is stored and "optimizer" is gradient where they are left out.
#pragma once

#include "base/json_reader.hpp"
#include "strategies/layout/assign.hpp"

namespace shardsim {

[[nodiscard]] Json layout_to_json(const Layout& layout, const Workload& workload, const Mesh& mesh);

// Throws InputError: a parameter that is left out, a name that the model does not have, a spec that
// does not fit.
[[nodiscard]] Layout read_layout(const JsonReader& json, const Workload& workload,
                                 const Mesh& mesh);

}  // namespace shardsim
