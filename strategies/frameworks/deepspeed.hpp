// DeepSpeed's ZeRO 0 to 2 (defaults of 0.19.8), under Megatron-DeepSpeed with tensor parallelism
// over the model axis and stages. Gradients travel in the type they are made in; ZeRO 1 and 2
// all-reduce whole buckets, of which each device keeps its part.
//
//   key                values        when left out
//   zero_stage         0, 1, 2       0
//   bucket_elements    a number      500,000,000 (reduce_bucket_size)
//
// Not here: ZeRO 3 (fsdp and fsdp1 shard parameters), hpZ, qwZ, offload.
// Source: deepspeed/runtime/zero/stage_1_and_2.py and engine.py.
#pragma once

#include "strategies/frameworks/framework.hpp"

namespace shardsim {

[[nodiscard]] Framework deepspeed_framework();

}  // namespace shardsim
