// Attention as diffusers' class of that name has it: names of its projections, a bias of the last.
#pragma once

#include <string>

#include "workloads/models/spec.hpp"

namespace shardsim::models {

inline Attention diffusers_attention(const std::string& name, std::int64_t heads,
                                     std::int64_t head_dim) {
  Attention attention;
  attention.name = name;
  attention.heads = attention.kv_heads = heads;
  attention.head_dim = head_dim;
  attention.q = "to_q";
  attention.k = "to_k";
  attention.v = "to_v";
  attention.o = "to_out.0";
  attention.o_bias = true;
  attention.cached = false;
  return attention;
}

}  // namespace shardsim::models
