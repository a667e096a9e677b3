// Mixers that are sketches: each a value of its own, with a function that draws it.
#pragma once

#include <string>
#include <variant>

#include "workloads/layers/block_attention.hpp"
#include "workloads/layers/bottleneck_layer.hpp"
#include "workloads/layers/compressed_attention.hpp"
#include "workloads/layers/convolved_attention.hpp"
#include "workloads/layers/differential_attention.hpp"
#include "workloads/layers/dynamic_mask_attention.hpp"
#include "workloads/layers/filtered_attention.hpp"
#include "workloads/layers/grouped_convolutions.hpp"
#include "workloads/layers/indexed_attention.hpp"
#include "workloads/layers/lightning_attention.hpp"
#include "workloads/layers/local_attention.hpp"
#include "workloads/layers/matrix_memory.hpp"
#include "workloads/layers/padded_attention.hpp"
#include "workloads/layers/relative_attention.hpp"
#include "workloads/layers/retrieved_experts.hpp"
#include "workloads/layers/rwkv.hpp"
#include "workloads/layers/sketch.hpp"
#include "workloads/layers/windowed_attention.hpp"

namespace shardsim::models {

struct Mixer {
  std::variant<DifferentialAttention, LightningAttention, WindowedAttention, GroupedAttention,
               GroupedMlp, ConvolvedAttention, RelativeAttention, PaddedAttention, BlockAttention,
               BottleneckLayer, LocalAttention, CompressedAttention, RwkvTimeMix, RwkvChannelMix,
               StreamNorm, MatrixMemory, IndexedAttention, DynamicMaskAttention, RetrievedExperts,
               FilteredAttention>
      what;

  bool operator==(const Mixer&) const = default;
};

// Of x [batch, sequence, hidden]; the result has the same axes.
Node draw(Sketch& s, const Mixer& mixer, Node x);
Value run(Eager& e, const Mixer& mixer, const Value& x, Context& context);
[[nodiscard]] std::string to_text(const Mixer& mixer);
// Of the kinds that models generate with: does it keep what tokens to come need?
[[nodiscard]] bool generates(const Mixer& mixer);
// What a sequence has to be a multiple of.
[[nodiscard]] std::int64_t sequence_step(const Mixer& mixer);

}  // namespace shardsim::models
