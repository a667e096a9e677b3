// All-reduces of inference engines: one kernel, in which every device of a node reads what all
// others have, over NVLink, and adds it up itself. vLLM's and SGLang's custom all-reduce,
// TensorRT-LLM's one-shot strategy and PyTorch's IntraNodeComm are such kernels; NCCL, whose rings
// take a hop for each device, is left out. For payloads of decoding steps.
//
//   time = launch + 1.6 us + 1.1 us * log2(n) + P / 39 GB/s
//
// Latency and rate are fits to what SGLang measured on H100 with kernels of this kind (pull request
// 2904 of sgl-project/sglang, 2025-01-15): 512 bytes on 2, 4 and 8 GPUs in 3.7, 4.8 and 5.9 us with
// a launch of 1 us, 1 MiB on 4 in 31.1 us. The same table has 4 KiB in 3.9, 3.7 and 5.7 us, 32 KiB
// in 4.5, 4.8 and 7.8 us, 512 KiB in 12.5, 20.2 and 22.1 us.
//
// Example: 8 KiB on 8 devices: 1 + 1.6 + 3.3 + 0.2 = 6.1 us, where NCCL's ring takes 43 us on A100.
#pragma once

#include <string_view>

#include "base/units.hpp"
#include "sim/collectives/cost_breakdown.hpp"

namespace shardsim {

inline constexpr std::string_view one_shot_name = "one-shot";
// PyTorch takes two shots from 256 KiB on, vLLM NCCL from 8 MiB on; this is what is known of it.
inline constexpr Bytes most_of_one_shot{1 << 20};

[[nodiscard]] CostBreakdown one_shot_cost(std::int64_t members, Bytes payload, Seconds launch);

}  // namespace shardsim
