// Inputs of each layer beside the stream (Gemma 3n and 4): a second table of embeddings, looked up
// by the same tokens, has a row of `width` numbers for every layer; a projection of what enters the
// stack, normed row by row, is added. A layer gates the stream's projection with its own rows.
//
// Example: Gemma 4 E2B, T tokens, 35 layers: the table is [262144, 35 * 256], its look-up
// 2T * 8960 bytes; each layer multiplies [1536 -> 256] and [256 -> 1536].
//
// Source: transformers 5.23.0, modeling_gemma4.py (Gemma4TextModel.project_per_layer_inputs).
#pragma once

#include <string>

#include "workloads/layers/context.hpp"
#include "workloads/layers/norm.hpp"

namespace shardsim::models {

// Of a stack. Names are full.
struct PerLayerInputs {
  std::string table;  // of vocab rows, each of all layers' numbers
  std::int64_t vocab = 0;
  std::int64_t width = 0;  // of one layer
  std::string project;     // of what enters the stack
  Norm norm{};
  bool made_ids = false;  // numbers that the table lacks are 0: a tensor of their own

  bool operator==(const PerLayerInputs&) const = default;
};

// Of a layer: project(act(gate(x)) * its rows).
struct PerLayerGate {
  std::string gate = "per_layer_input_gate";
  std::string project = "per_layer_projection";
  std::int64_t width = 0;
  std::string activation = "gelu_pytorch_tanh";

  bool operator==(const PerLayerGate&) const = default;
};

// [batch, sequence, layers, width]; x is what enters the stack.
Value run(Eager& e, const PerLayerInputs& inputs, const Value& ids, const Value& x,
          std::int64_t layers);
Value run(Eager& e, const PerLayerGate& gate, const Value& x, const Context& context);

}  // namespace shardsim::models
