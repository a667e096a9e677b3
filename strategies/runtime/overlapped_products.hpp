// Collectives of tensor parallelism that go on beside the products next to them, in as many pieces
// as the group has devices: what arrives is multiplied while the next piece is under way
// (Transformer Engine's userbuffers, transformer_engine/common/comm_gemm_overlap of 2.0; PyTorch's
// async tensor parallelism, torch/distributed/_symmetric_memory of 2.7).
//
//   gather, product     the device's own piece is there: all but one piece of the product goes
//                       beside the gather, the last behind it
//   product, scatter    all but one piece of the scatter goes beside the product's last pieces, one
//                       behind it
//
// so that both take max(product, collective) and one piece more. The pieces beside each other are
// one task here: in n pieces they have the same ends. A piece is a smaller product, and takes what
// such a one takes.
//
// in_turn is the other way round: sums of backward have the stream of the products.
//
// XLA does so with scatters alone ("windowed einsum": permutes both ways round), over 4 devices and
// more, where the product sums over much (Collective::contracted; the machine decides by it).
#pragma once

#include "plan/mesh.hpp"
#include "strategies/partition/spmd.hpp"
#include "strategies/runtime/runtime.hpp"

namespace shardsim {

// Of collectives over `axis` alone. Those whose payload does not divide into the pieces stay whole.
void overlap_products(SpmdStep& step, const AxisRef& axis, ProductOverlap overlap);

}  // namespace shardsim
