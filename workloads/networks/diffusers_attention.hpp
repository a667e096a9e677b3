// Attention and FeedForward as diffusers' classes of these names have them.
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
  attention.bidirectional = true;
  attention.cached = false;
  return attention;
}

// And its FeedForward, four times as wide.
inline Mlp diffusers_mlp(const std::string& name, std::int64_t hidden,
                         const std::string& activation, MlpForm form, double dropout) {
  Mlp mlp;
  mlp.name = name;
  mlp.width = 4 * hidden;
  mlp.form = form;
  mlp.activation = activation;
  mlp.bias = true;
  mlp.up = "net.0.proj";
  mlp.down = "net.2";
  mlp.inner_dropout = dropout;
  return mlp;
}

}  // namespace shardsim::models
