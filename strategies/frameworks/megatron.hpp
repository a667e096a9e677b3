// Megatron-Core (defaults of core 0.20): tensor parallelism over the model axis, gradients in
// buffers of fp32 that products add to, cut into buckets, the distributed optimizer over the data
// axes; stages by the interleaved schedule where there are several per rank.
//
//   key                    values                              when left out
//   sequence_parallel      true, false                         false
//   fsdp                   true, false                         false; true: parameters, gradients
//                                                              and optimizer in shards, as
//                                                              --use-megatron-fsdp
//   distributed_optimizer  true, false                         true
//   optimizer_shards       devices that share its state        all of the data axes
//   overlap                {"gradients", "parameters", ...}    true and true
//   bucket_elements        a number                            40,000,000, or 1,000,000 for each
//                                                              device of the data axes if that is
//                                                              more
// Sources: megatron/core/distributed/{distributed_data_parallel_config,param_and_grad_buffer}.py,
// megatron/core/optimizer/distrib_optimizer.py, core/pipeline_parallel/schedules.py.
#pragma once

#include "strategies/frameworks/framework.hpp"

namespace shardsim {

[[nodiscard]] Framework megatron_framework();

}  // namespace shardsim
