// Shards of parameters, of gradients and of the optimizer on the host, as FSDP offloads them:
//
//   a gather     shards are copied to the device in the type that they are stored in, then cast
//   a reduction  what it leaves of a unit's gradients is copied to the host, where later
//                microbatches are added
//   the update   is the host's, on all that lies there; the norm is taken and applied there, too
//
// Memory is pinned. Shards of the next unit come beside the one that computes; gradients go behind
// their reduction, and the second unit after waits for both. A unit's tensors, which PyTorch copies
// one by one, are one copy here. Where gradients are added up over microbatches PyTorch's host
// waits for each copy, which is left out. Norms are added up over devices as numbers on these,
// where PyTorch has gloo do it.
//
// Example: Llama-3.1-8B over 8 devices in fp32: a layer brings 109 MB to each in forward and again
// in backward and leaves 109 MB of gradients; the host keeps 16 bytes a parameter, 16 GB for each.
//
// Source: torch/distributed/fsdp/_fully_shard, CPUOffloadPolicy (_fsdp_param.py, all_gather_inputs;
// _fsdp_collectives.py, foreach_reduce), and FSDP1's CPUOffload (_flat_param.py, pre_unshard;
// _runtime_utils.py, _post_reduce_grad_callback), PyTorch 2.9.
#pragma once

#include <string>
#include <vector>

#include "strategies/partition/spmd_builder.hpp"

namespace shardsim {

// Stored parameters, which are not there before.
void keep_parameters_on_host(SpmdBuilder& builder);

// On the device, of those among `values` that lie on the host; the others as they are.
[[nodiscard]] std::vector<ValueId> bring_from_host(SpmdBuilder& builder,
                                                   const std::vector<ValueId>& values,
                                                   const std::string& unit,
                                                   std::vector<Item>& items);

// Gradients, kept there in place of where they are.
[[nodiscard]] std::vector<ValueId> send_to_host(SpmdBuilder& builder,
                                                const std::vector<ValueId>& gradients,
                                                const std::string& unit, std::vector<Item>& items);

}  // namespace shardsim
