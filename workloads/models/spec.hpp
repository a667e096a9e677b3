// A model as data: what it is made of, in the order in which it runs.
//
//   ModelSpec   stacks of layers, and a head
//   Stack       what enters it, its kinds of layers, the order of the layers, a norm
//   LayerKind   branches that read the residual stream and add to it, one after another or, where
//               `parallel`, all of the same input
//   Branch      norm, body, norm: attention, an MLP, experts, a mixer
//
// What is no stack of layers, convolutions and diffusion, is a Network (workloads/networks).
//
// Llama 3.1 8B is one stack of one kind, 32 times: {norm, attention}, {norm, gated MLP}. Gemma 3 is
// two kinds, windowed and full, in the order 0 0 0 0 0 1 0 0 ... A layer that differs in anything
// is another kind; how often a kind occurs costs nothing.
//
// Values: they compare, and to_text prints them. A reader of config.json makes them
// (workloads/models/families); walk.hpp makes parameters, FLOPs and saved activations of them.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "workloads/layers/altup.hpp"
#include "workloads/layers/attention.hpp"
#include "workloads/layers/attention_experts.hpp"
#include "workloads/layers/attention_pool.hpp"
#include "workloads/layers/delta_net.hpp"
#include "workloads/layers/embeddings.hpp"
#include "workloads/layers/experts.hpp"
#include "workloads/layers/heads.hpp"
#include "workloads/layers/hyper_connections.hpp"
#include "workloads/layers/latent_attention.hpp"
#include "workloads/layers/mamba.hpp"
#include "workloads/layers/mixers.hpp"
#include "workloads/layers/mlp.hpp"
#include "workloads/layers/per_layer_input.hpp"
#include "workloads/layers/recurrent_block.hpp"
#include "workloads/layers/shared_block.hpp"
#include "workloads/layers/short_convolution.hpp"
#include "workloads/networks/network.hpp"

namespace shardsim::models {

using Body = std::variant<Attention, LatentAttention, AttentionExperts, Mlp, Experts, Mamba, Mamba2,
                          DeltaNet, ShortConvolution, RecurrentBlock, PerLayerGate, Mixer>;

// Of what a norm gives, y sigmoid(up(silu(down(y)))), the sigmoid in fp32: products of a small rank
// in a module of this name (A.X K2).
struct NormGate {
  std::string name, down = "fc1", up = "fc2";
  std::int64_t rank = 0;

  bool operator==(const NormGate&) const = default;
};

struct Branch {
  Norm before{};
  std::optional<NormGate> before_gate{};
  Body body{};
  std::optional<Body> beside{};    // another that reads the same, added to what the first gives
  bool beside_of_stream = false;   // or the stream as it is
  std::optional<Body> shortcut{};  // of what the body reads, added behind the layer's last branch
  Norm body_after{}, beside_after{};  // of what either gives, before both are added
  Norm after{};                       // of what the body gives
  std::optional<Laurel> laurel{};     // of what the body reads, added behind the branch
  Norm joined{};                      // of the sum with the residual stream
  std::string scale{};                // a learned factor of each channel; empty: none
  bool multiplied = false;            // by a number: Granite's residual multiplier
  bool stream_multiplied = false;     // the stream that it is added to, too (Beam)
  std::string stream_scale{};         // or times a learned factor of each channel (Doge)
  bool replaces = false;              // what the body gives is the stream, added to nothing
  bool of_normed = false;  // added to what the norm before gave, times a number (MiniMax)
  double dropout = 0;      // of what is added
  bool silent = false;     // there, but not run: attention to an encoder that is not there
  std::string maps{};      // of the stack's hyper-connections, the module of this branch's
  bool masked = false;     // the stream behind it times a mask of padding, made in each layer

  bool operator==(const Branch&) const = default;
};

struct LayerKind {
  std::string name;
  std::vector<Branch> branches{};
  bool silent = false;                  // there, but not run: what text alone passes by
  bool parallel = false;                // a branch without a norm of its own reads the first one's
  std::optional<SharedBlock> shared{};  // added to what the first branch reads
  // Streams that the layer predicts and corrects: its last branch reads the first of them and is
  // added to the others.
  std::optional<AltUp> altup{};
  std::string scalar{};  // a buffer [1] that multiplies what the layer leaves

  bool operator==(const LayerKind&) const = default;
};

// Of distances: a bias that all of a stack's layers add to their scores (MPNet), or rows that they
// project (DeBERTa).
struct DistanceTable {
  std::string name;  // full
  std::int64_t buckets = 0;
  std::int64_t heads = 0;  // 0: rows, as wide as the stack
  Norm norm{};             // of the rows
  double dropout = 0;      // of them, in each layer
  bool near_only = false;  // layers read those of distances that the sequence has (DeBERTa 1)

  bool operator==(const DistanceTable&) const = default;
};

enum class StackRole : std::uint8_t {
  main,     // its states go to the head
  encoder,  // its states go to others' cross attention
  silent    // there, but not run: the images' part of a model that got text alone
};

struct Stack {
  StackRole role = StackRole::main;
  std::string prefix = "model.layers";  // of the layers' names
  // Layers have no module of their own: "{}" in their names stands for a layer's number, and the
  // prefix is that of the lists of their modules (XLM: "attentions.{}").
  bool numbered_inside = false;
  std::int64_t hidden = 0;
  // Tokens are padded to a multiple of so many, and cut off again behind the layers (Longformer);
  // 0: they are not.
  std::int64_t pads_to = 0;
  Input input{};
  std::optional<DistanceTable> distances{};
  std::optional<PerLayerInputs> per_layer{};
  std::optional<AltUpEnds> altup{};
  std::optional<HyperConnections> hyper{};
  std::vector<LayerKind> kinds;
  std::vector<int> order;      // kinds[order[i]] is layer i
  bool fp32_residual = false;  // the stream is kept in fp32, and cast for each branch
  Norm norm{};                 // of what the last layer leaves; full name
  std::string project{};       // then to the embedding's width; full name
  std::int64_t project_width = 0;
  bool project_bias = false;
  bool projects_rows = false;           // all of them, before one is picked
  double dropout = 0;                   // of the norm's result
  bool norm_first_only = false;         // the norm reads the first row alone
  bool picks_row = false;               // then one row of each example, by index
  bool picks_last = false;              // or the last: a view
  std::optional<AttentionPool> pool{};  // or what a learned row sees of them
  bool pool_unread = false;             // which runs, and whose result nobody reads
  std::string idle_pooler{};            // nor that of this dense module, of the first row
  // Full names of the modules that layers have in common (ALBERT); empty: each has its own.
  std::vector<std::string> modules{};

  bool operator==(const Stack&) const = default;
};

// A table of embeddings that several stacks read; its full name.
struct SharedTable {
  std::string name;
  std::int64_t vocab = 0;
  std::int64_t width = 0;

  bool operator==(const SharedTable&) const = default;
};

// Of what does not run: projectors between images and text, convolutions of patches.
struct NamedParameter {
  std::string name;  // full
  Shape shape;
  bool embedding = false;
  std::string other_name{};  // of the module that has it, too (LUKE's logits of entities)

  bool operator==(const NamedParameter&) const = default;
};

struct NamedBuffer {  // of the checkpoint, outside the layers
  std::string name;
  Shape shape;

  bool operator==(const NamedBuffer&) const = default;
};

// That so many tokens are for the stack's layers; of one token, which asks for parameters alone, 1.
[[nodiscard]] inline std::int64_t padded_tokens(const Stack& stack, std::int64_t tokens) {
  if (stack.pads_to == 0 || tokens == 1) return tokens;
  return (tokens + stack.pads_to - 1) / stack.pads_to * stack.pads_to;
}

struct ModelSpec {
  std::string name;
  std::string architecture;  // "LlamaForCausalLM"
  std::string family;        // "llama"
  DType dtype = DType::bf16;
  std::vector<SharedTable> shared{};
  std::vector<NamedBuffer> buffers{};
  std::vector<NamedParameter> apart{};
  std::vector<Stack> stacks;         // in the order of running
  std::optional<Network> network{};  // or one of those that are no stacks of layers
  Head head{};

  bool operator==(const ModelSpec&) const = default;
};

// Stacks, their kinds of layers and which layers are of each, branch by branch.
[[nodiscard]] std::string to_text(const ModelSpec& spec);

}  // namespace shardsim::models
