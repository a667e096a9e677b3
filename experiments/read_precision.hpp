// The types of a step, as an experiment says them under "precision":
//
//   compute        between products, and of products; fp8, mxfp8, nvfp4 and int8 are of products of
//                  layers alone (workloads/step/narrow_products.hpp), bf16 lies between them
//   norms, look_ups, indices        in which these are done, where not in the compute dtype
//   parameters, master, moments     as stored between steps. Without "master": none where the
//                                   parameters are fp32, which are their own, else fp32
//   gradients, reduce               as accumulated, and as reduced between devices: where "reduce"
//                                   is not said, as accumulated
//   scaling, attention: "fp8", gather: "fp8", bf16_layers: {"first": 1, "last": 1}
//                                   of narrow products; what has no effect yet is a warning
#pragma once

#include "base/json_reader.hpp"
#include "workloads/step/step.hpp"

namespace shardsim {

void read_precision(const JsonReader& json, Step& step);
[[nodiscard]] Json precision_to_json(const Step& step);

}  // namespace shardsim
