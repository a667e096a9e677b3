// PyTorch's own ways to train on many devices, as torch 2.15 and torchtitan 0.3 have them:
//
//   fsdp2       torch.distributed.fsdp.fully_shard on every layer and on the root, over the shard
//               axis, replicas over another batch axis (HSDP), DTensor tensor parallelism over the
//               model axis. What forward gathered of the root stays; backward asks one unit ahead
//   fsdp1       FullyShardedDataParallel around every layer and the root, FULL_SHARD, backward
//               prefetch: the same calls; gradients travel in the compute dtype
//   torchtitan  fully_shard with the embedding, and the norm with the head, units of their own;
//               tensor parallelism with sequence and loss parallelism; gradients clipped. In a
//               pipeline forward keeps what it has gathered
//   ddp         DistributedDataParallel: gradients in buckets as they become ready, of 25 MiB and a
//               first of 1 MiB, all-reduced
//
//   key             of          values            when left out
//   async_tp        torchtitan  true, false       false
//   spmd_backend    torchtitan  partial_dtensor,  partial_dtensor
//                               full_dtensor, spmd_types
//   bucket_cap_mb   ddp         a number          25, with a first bucket of 1
//   kernels, context  all       framework.hpp
//
// Not modelled of FSDP1: its flat parameter is padded once, at its end; here each tensor is padded
// in its first dimension as FSDP2 does it.
// Sources: torch/distributed/fsdp/_fully_shard, torch/nn/parallel/distributed.py (and Reducer),
// torchtitan/models/llama3/parallelize.py; checked against records of the real programs
// (tests/golden/torch).
#pragma once

#include "strategies/frameworks/framework.hpp"

namespace shardsim {

[[nodiscard]] Framework fsdp1_framework();
[[nodiscard]] Framework fsdp2_framework();
[[nodiscard]] Framework torchtitan_framework();
[[nodiscard]] Framework ddp_framework();

}  // namespace shardsim
