// Gradients that lie in a buffer from the first microbatch to the optimizer (Grain::bucket): ops
// leave them (BlockPass::writes), a kernel adds each to its place, or the product that makes it
// does. The buffer itself, its buckets and their calls are of a stage and belong to its program
// (compile/emit_buckets.cpp).
//
//   dW = dY^T X                         a product whose result is added up in the buffer: it reads
//                                       and writes four bytes an element where it wrote two
//                                       (Apex's wgrad_gemm_accum_fp32)
//   all others, or without that fusion  made in the compute dtype, then added or, where a bucket is
//                                       reduced in every microbatch, copied (DeepSpeed)
#pragma once

#include <map>

#include "strategies/layout/assign.hpp"
#include "strategies/partition/spmd_builder.hpp"
#include "strategies/runtime/runtime.hpp"
#include "workloads/step/step.hpp"

namespace shardsim {

class GradientBuffers {
 public:
  // Axes that split the batch or the sequence are those that buckets are reduced over.
  GradientBuffers(SpmdBuilder& builder, const Layout& layout, const GradientBuffer& runtime,
                  const Step& step);

  // To be called for the backward passes of all blocks.
  void add(BlockPass& pass);

 private:
  ValueId add_main(const Write& write);
  // If the item is a product that may do so, it adds to `main`.
  bool adds_up(Item& item, const Write& write, ValueId main);
  [[nodiscard]] Item addition(const Write& write, ValueId main);
  [[nodiscard]] Item sum_apart(Item item, ValueId made, ValueId main);
  // Is a bucket reduced before the next microbatch leaves anything in it?
  [[nodiscard]] bool copies() const;
  // Of a bucket of its own, because it is larger than one: it stays where it is made.
  [[nodiscard]] bool is_alone(ValueId made, ValueId main) const;

  SpmdBuilder& builder_;
  const Layout& layout_;
  const GradientBuffer& runtime_;
  DType dtype_;
  std::map<TensorId, const Op*> updates_;  // of the optimizer, by parameter
};

}  // namespace shardsim
