// How much of a program's products the model asks for: the numerator of MFU, by the convention of
// workloads/graph/op_graph.hpp, which leaves out what is computed again and what a causal mask
// spares.
//
//   executed      all products, as flops.hpp counts them
//   recomputed    jax.checkpoint puts an optimization_barrier before what it computes again:
//                 products that depend on one, as many as there are that do not and may be the
//                 same: of equal shapes, and no operand of one is a part of another argument of the
//                 program (another weight) than that of the other
//   masked        products that make or read arrays with the sizes of those under a causal mask
//                 (scores of attention, their gradients), recomputed ones apart
//
//   needed() == executed - recomputed - masked / 2      full_attention() == executed - recomputed
//
// A mask is causal where positions are compared by order: compare LE of an iota with another, then
// select or add with arrays of data.
//
// Example: the layer x W of forward, gradients of x and W, under jax.checkpoint: four products, of
// which one is recomputed. Exact for decoders whose steps jax makes (tests/golden/xla_models); an
// estimate where a gradient's product has shapes and weight of one of the forward pass that was
// kept, and where operands are all computed, as those of attention are.
#pragma once

#include <optional>

#include "base/units.hpp"
#include "stablehlo/module.hpp"

namespace shardsim::stablehlo {

struct ModelWork {
  Flops executed{0};
  Flops recomputed{0};
  Flops masked{0};
  std::optional<TensorType> scores;  // the largest array under a causal mask

  [[nodiscard]] Flops full_attention() const { return executed - recomputed; }
  [[nodiscard]] Flops needed() const { return full_attention() - masked * 0.5; }
};

// Of a function with everything that it calls, as work_of (flops.hpp), whose errors it has.
[[nodiscard]] ModelWork model_work(const Module& module, const Function& function);

}  // namespace shardsim::stablehlo
