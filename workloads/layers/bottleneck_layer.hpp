// MobileBERT's layer, whole (arXiv:2004.02984): products into a narrow stream, attention and
// several MLPs in it, a product back that is added to the wide one. Norms of the sums are
// x * weight + bias or layer norms.
#pragma once

#include <string>

#include "workloads/layers/sketch.hpp"

namespace shardsim::models {

struct BottleneckLayer {
  std::int64_t heads = 0;
  std::int64_t narrow = 128;
  std::int64_t width = 512;  // of the MLPs
  std::int64_t mlps = 4;
  std::string activation = "relu";
  NormKind norm = NormKind::scale;
  bool shares_keys = true;        // queries and keys come of a narrow stream of their own
  bool narrow_attention = false;  // or all three of the one that is added to
  double dropout = 0;             // of what is added to the wide stream
  double attention_dropout = 0.1;

  bool operator==(const BottleneckLayer&) const = default;
};

// The new stream, not what is added to it.
Node draw(Sketch& s, const BottleneckLayer& l, Node x);
[[nodiscard]] std::string to_text(const BottleneckLayer& l);

}  // namespace shardsim::models
