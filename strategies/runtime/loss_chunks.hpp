// The loss in chunks of tokens: each goes through the head and the loss and back at once, in the
// forward pass, so that logits of one chunk are there at a time (torchtitan's ChunkedCELoss).
//
//   forward    norm; of each chunk: logits, loss, gradients of both, added up: of the head in the
//              type that gradients are reduced in; the head's is reduced behind the last
//   backward   what is left: from the gradient of what the head reads on
//
// Where the head is of a unit that is read before (torchtitan's with the norm), the unit is given
// back before the chunks, gathered for them, and once more in backward.
// Source: torchtitan 0.3 components/loss.py; the order of calls from a record of it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "strategies/layout/assign.hpp"
#include "strategies/partition/spmd_builder.hpp"

namespace shardsim {

struct ChunkedLoss {
  std::size_t block = 0;
  TensorId head = no_tensor;  // its parameter
};

// Throws InputError: stages, heads that are the embedding, several losses, gradients in buffers,
// tokens of a device that do not divide.
void check_loss_chunks(const Workload& workload, const Layout& layout, const Strategy& strategy);

// Moves items from the backward pass to the forward one, whose writes and Inner say where.
ChunkedLoss chunk_loss(SpmdBuilder& builder, std::int64_t chunks, DType reduced);

}  // namespace shardsim
