// A model as data: what it is made of, in the order in which it runs.
//
//   ModelSpec   stacks of layers, and a head
//   Stack       what enters it, its kinds of layers, the order of the layers, a norm
//   LayerKind   branches that read the residual stream and add to it, one after another or, where
//               `parallel`, all of the same input
//   Branch      norm, body, norm: attention, an MLP, experts, a mixer
//
// Llama 3.1 8B is one stack of one kind, 32 times: {norm, attention}, {norm, gated MLP}. Gemma 3 is
// two kinds, windowed and full, in the order 0 0 0 0 0 1 0 0 ... A layer that differs in anything is
// another kind; how often a kind occurs costs nothing.
//
// Values: they compare, and to_text prints them. A reader of config.json makes them
// (workloads/models/families); walk.hpp makes parameters, FLOPs and saved activations of them.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "workloads/layers/attention.hpp"
#include "workloads/layers/delta_net.hpp"
#include "workloads/layers/experts.hpp"
#include "workloads/layers/latent_attention.hpp"
#include "workloads/layers/mamba.hpp"
#include "workloads/layers/mlp.hpp"

namespace shardsim::models {

using Body = std::variant<Attention, LatentAttention, Mlp, Experts, Mamba, Mamba2, DeltaNet>;

struct Branch {
  Norm before{};
  Body body{};
  Norm after{};        // of what the body gives
  Norm joined{};       // of the sum with the residual stream
  double dropout = 0;  // of what is added

  bool operator==(const Branch&) const = default;
};

struct LayerKind {
  std::string name;
  std::vector<Branch> branches;
  bool parallel = false;  // a branch without a norm of its own reads the first one's

  bool operator==(const LayerKind&) const = default;
};

struct TokenEmbedding {
  std::string name = "model.embed_tokens";
  std::int64_t vocab = 0;
  std::int64_t width = 0;
  bool scaled = false;             // by a number
  std::string positions{};         // a learned table; empty: none
  std::int64_t position_rows = 0;
  std::int64_t position_offset = 0;    // rows before the first position's
  bool positions_per_example = false;  // their numbers are computed for each example
  Norm norm{};
  std::string dropout_name{};  // of the module; empty: of none
  double dropout = 0;
  std::string project{};  // to the stack's width, where it differs; no bias

  bool operator==(const TokenEmbedding&) const = default;
};

using Input = std::variant<TokenEmbedding>;

struct Stack {
  std::string prefix = "model.layers";  // of the layers' names
  std::int64_t hidden = 0;
  Input input{};
  std::vector<LayerKind> kinds;
  std::vector<int> order;  // kinds[order[i]] is layer i
  bool fp32_residual = false;  // the stream is kept in fp32, and cast for each branch
  Norm norm{};             // of what the last layer leaves; full name
  std::string project{};   // then to the embedding's width; no bias; full name
  std::int64_t project_width = 0;

  bool operator==(const Stack&) const = default;
};

struct Head {
  std::string name = "lm_head";
  std::int64_t vocab = 0;
  bool bias = false;
  std::string tied_to{};  // the full name of the weight; empty: its own
  double soft_cap = 0;    // tanh(logits / cap) * cap

  bool operator==(const Head&) const = default;
};

struct ModelSpec {
  std::string name;
  std::string architecture;  // "LlamaForCausalLM"
  std::string family;        // "llama"
  DType dtype = DType::bf16;
  std::vector<Stack> stacks;
  Head head{};

  bool operator==(const ModelSpec&) const = default;
};

}  // namespace shardsim::models
