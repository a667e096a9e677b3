// DeepSpeed's ZeRO 0 to 3 (defaults of 0.19.8), under Megatron-DeepSpeed with tensor parallelism
// over the model axis and stages. Gradients travel in the type they are made in; ZeRO 1 and 2
// all-reduce whole buckets, of which each device keeps its part. ZeRO 3 reduce-scatters them, and
// gathers parameters as modules are entered.
//
//   key                             values      when left out    DeepSpeed's
//   kernels                         eager that do not say what is "fused" have Megatron's own
//                                   kernels: softmax with scale and mask, dropout with its sum
//   zero_stage                      0 to 3      0
//   bucket_elements                 a number    500,000,000      reduce_bucket_size; of ZeRO 0
//                                                                always 500,000,000
//   round_robin_gradients           a flag            false      the same; of ZeRO 1 and 2
//   overlap_comm                    a flag            false      the same; of ZeRO 1, which then
//                                                                reduces as ZeRO 2 does, in
//                                                                backward: others do at any rate;
//                                                                of both: room for two buckets
//   reduce_scatter                  a flag             true      the same; of ZeRO 1 and 2: false,
//                                                                each bucket in one call, though it
//                                                                is larger and of several's parts
//   of ZeRO 3:
//   prefetch_bucket_elements        a number     50,000,000      stage3_prefetch_bucket_size
//   persistence_threshold_elements  a number        100,000      stage3_param_persistence_threshold
//   max_live_elements               a number  1,000,000,000      stage3_max_live_parameters
//   max_reuse_distance_elements     a number  1,000,000,000      stage3_max_reuse_distance
//   sub_group_elements              a number  1,000,000,000      sub_group_size
//   hpz                             a number              1      zero_hpz_partition_size
//   qwz                             a flag            false      zero_quantized_weights
//   allgather_sequential            a flag            false      stage3_allgather_sequential
//   model_persistence_elements      a number  0: no limit        stage3_model_persistence_threshold
//   memory_efficient_linear         a flag             true      the same
//
// Not here: qgZ, NVMe.
// Source: deepspeed/runtime/zero/{config,stage_1_and_2,stage3}.py and engine.py.
#pragma once

#include "strategies/frameworks/framework.hpp"

namespace shardsim {

[[nodiscard]] Framework deepspeed_framework();

}  // namespace shardsim
