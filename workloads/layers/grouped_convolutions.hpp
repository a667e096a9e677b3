// SqueezeBERT's halves of a layer (arXiv:2006.11316): an encoder's attention and MLP whose products
// are 1 x 1 convolutions of groups of channels. Attention is multiplied out.
#pragma once

#include <string>

#include "workloads/layers/sketch.hpp"

namespace shardsim::models {

struct GroupedAttention {
  std::int64_t heads = 0;
  std::int64_t q_groups = 1, k_groups = 1, v_groups = 1, out_groups = 1;
  double dropout = 0;

  bool operator==(const GroupedAttention&) const = default;
};

struct GroupedMlp {
  std::int64_t width = 0;
  std::string activation = "gelu";
  std::int64_t up_groups = 1, down_groups = 1;

  bool operator==(const GroupedMlp&) const = default;
};

Node draw(Sketch& s, const GroupedAttention& a, Node x);
Node draw(Sketch& s, const GroupedMlp& m, Node x);
[[nodiscard]] std::string to_text(const GroupedAttention& a);
[[nodiscard]] std::string to_text(const GroupedMlp& m);

}  // namespace shardsim::models
