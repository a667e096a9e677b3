// Which activations of the forward pass the backward pass finds (rematerialization.hpp).
//
//   of a kind that the policy is for   what enters it and what the policy keeps
//   of any other                       all
//   in any                             never what is made again (Tensor::remade)
//
// Example: {"modules": ["mlp"]} of a Llama: all of a layer but gate, up, activation and product;
// what leaves the MLP stays.
#pragma once

#include <vector>

#include "workloads/step/rematerialization.hpp"

namespace shardsim {

// By tensor; `kinds`: blocks that the policy is for. Throws InputError as rematerialize.
[[nodiscard]] std::vector<bool> kept_activations(const Workload& workload,
                                                 const Rematerialization& options,
                                                 const std::vector<bool>& kinds);

// Those of them that lie on the host.
[[nodiscard]] std::vector<bool> offloaded_activations(const Workload& workload,
                                                      const Rematerialization& options);

}  // namespace shardsim
