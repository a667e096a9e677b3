// What a learned row sees of all rows of an example: attention with one query, then an MLP with a
// norm before it, added (SigLIP's pooling, arXiv:2303.15343; PyTorch's MultiheadAttention, which
// multiplies its scores out). Rows [batch, h] come out.
//
// Example: SigLIP base, h = 768, S = 196: queries 2 h^2, keys and values 4 S h^2 FLOPs an image.
#pragma once

#include <string>

#include "workloads/eager/eager.hpp"
#include "workloads/layers/mlp.hpp"
#include "workloads/layers/norm.hpp"

namespace shardsim::models {

struct AttentionPool {
  std::string name;             // full
  std::string probe = "probe";  // a parameter [1, 1, h]
  std::string attention = "attention";
  std::int64_t heads = 0;
  Norm norm{};
  Mlp mlp{};

  bool operator==(const AttentionPool&) const = default;
};

Value run(Eager& e, const AttentionPool& pool, const Value& x);

}  // namespace shardsim::models
