// Puts what the backward pass computes again in front of it.
//
//   kept      what the policy names, and always what enters the block; never what is said to be
//             made again (Tensor::remade), which without a policy is all that is not kept
//   needed    forward activations that backward ops read and that are not kept
//   repeated  the forward ops that make what is needed, and what those in turn need; nothing else:
//             under `full`, a decoder layer's last matmul and residual add are not repeated, as
//             PyTorch's checkpoint stops early and XLA leaves out what nobody reads
//
// Megatron's own checkpoint runs the function to its end, as torchtitan has PyTorch's do (to_end):
// `modules` and the forms with a method repeat a module, or a layer, whole.
//
// Example: Llama's MLP as a module. Kept is what enters it, its norm's result; gate, up, silu,
// product and down are repeated before the gradient of down. The 3 products are 6 h f operations a
// token once more.
//
// Only layers are touched: embedding, final norm and loss keep theirs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/graph/op_graph.hpp"

namespace shardsim {

// Which forward activations the backward pass keeps; the others are computed again from what is
// kept, at the start of the block's backward pass; without a policy and with modules, where they
// are read.
struct Rematerialization {
  enum class Policy : std::uint8_t {
    none,
    full,       // only what enters a repeated block is kept
    selective,  // also the results of matmuls, attention and scans
    named,      // `save` and `offload`
    modules,    // all is kept but what the modules of `save` make
    of_jax      // a policy of JAX or MaxText, the one name in `save` (saved_names.hpp)
  };
  // Of which layers; the others keep all.
  enum class Layers : std::uint8_t {
    all,
    every,    // each `count`-th: of 2 the layers 1, 3, 5 from 0 (torchtitan's selective AC)
    uniform,  // groups of `count`: Megatron's method; a layer each
    block     // the first `count` (Megatron's method)
  };
  Policy policy = Policy::none;
  // named: names as MaxText gives them, or regular expressions (search) on activation names
  std::vector<std::string> save{};
  Layers layers = Layers::all;
  std::int64_t count = 0;
  std::vector<std::string> offload{};  // as `save`, kept on the host
  bool to_end = false;                 // full: nothing of a layer is left out
  friend bool operator==(const Rematerialization&, const Rematerialization&) = default;
};

// Gives layers that are treated otherwise kinds of their own, and answers which kinds the policy is
// for. Layers are counted from the start of each chunk of a pipeline: `chunks` are the places in
// Workload::order where one begins; empty is one chunk. The workload has its forward pass alone.
[[nodiscard]] std::vector<bool> rematerialized_kinds(Workload& workload,
                                                     const Rematerialization& options,
                                                     const std::vector<std::size_t>& chunks);

// `workload` has its backward pass; `kinds`: the blocks that the policy is for. Throws InputError:
// an expression that is none, matches no activation of a repeated block, or tells instances of one
// block apart; modules of which the model has none.
void rematerialize(Workload& workload, const Rematerialization& options,
                   const std::vector<bool>& kinds);

}  // namespace shardsim
