// The functions that ops compute: one table that says all that is known of each.
//
//   name      as `plan` prints it
//   kind      what the partitioner, rematerialization and the price of a kernel go by
//   flops     operations per point of the space that all labels of the op span; an op whose work
//             does not go over one space says itself what it does (Op::work)
//   linear    in its activations and gradients: partial sums of them may pass through
//   saves     what of its operands and results the backward pass reads, as PyTorch's autograd saves
//             it: bit i is operands[i], or results[i]
//   gradient  the rule of differentiation (step/gradient_rules.hpp); none of what only a backward
//             pass or an optimizer computes
//
// Example: silu makes y of x in 4 operations a point, x / (1 + exp(-x)); its backward pass reads x,
// so operands 0b1 are saved, and is silu_backward(dy, x).
//
// An exponential, a root or a hyperbolic tangent counts as one operation. Only einsum and attention
// are ever bound by arithmetic; the rest is bound by memory.
#pragma once

#include <cstdint>
#include <string_view>

namespace shardsim {

struct Op;
class GradientTape;

enum class OpKind : std::uint8_t {
  einsum,
  elementwise,
  norm,
  attention,
  scan,          // a recurrence along the sequence, token by token
  chunked_scan,  // in chunks of tokens, by products
  lookup,
  softmax_loss,
  exchange,  // of rows between tokens' devices and experts'
  optimizer
};

enum class Function : std::uint8_t {
  matmul,
  linear,          // with a bias
  grouped_matmul,  // each row with the matrix of one expert, perhaps with its bias
  add,
  multiply,
  silu,
  gelu,
  relu,
  relu_squared,
  relu6,
  leaky_relu,
  quick_gelu,  // x sigmoid(1.702 x)
  mish,        // x tanh(log(1 + exp(x)))
  xielu,       // of x and two learned numbers (arXiv:2411.13010)
  tanh,
  sigmoid,
  softplus,  // log(1 + exp(x))
  scale,     // by a number
  soft_cap,  // cap * tanh(x / cap)
  cast,
  mean,
  rope,
  split,
  concatenate,
  copy,
  expand,     // the same for each of a label
  softmax,    // over one label
  normalize,  // x / sum(x), over one label
  dropout,    // x where a mask says so, scaled
  top_k,
  dispatch,     // copies of tokens' rows, sorted by expert
  combine,      // of a token's rows, weighted
  append,       // rows behind those that a cache has, or in place of the oldest
  exchange,     // rows by token become rows by expert, or the other way round
  convolution,  // causal, depthwise: each channel with its own few taps along the sequence
  gate,         // x * silu(z)
  decay,        // -exp(a) * softplus(x + bias)
  rms_norm,
  layer_norm,
  gated_rms_norm,
  batch_norm,  // over the examples of a device
  attention,
  selective_scan,  // Mamba's
  chunked_scan,    // Mamba-2's
  delta_rule,      // gated, in chunks
  state_update,    // of a recurrence, by one token of each sequence
  rg_lru,          // Griffin's, with its gates (arXiv:2402.19427)
  embedding,
  log_softmax,
  nll_loss,
  // Of backward passes alone.
  sum,
  silu_backward,
  gelu_backward,
  relu_backward,
  relu_squared_backward,
  relu6_backward,
  leaky_relu_backward,
  quick_gelu_backward,
  mish_backward,
  xielu_backward,
  tanh_backward,
  sigmoid_backward,
  softplus_backward,
  soft_cap_backward,
  softmax_backward,
  normalize_backward,
  dropout_backward,
  top_k_backward,
  dispatch_backward,
  combine_backward,
  mean_backward,
  rope_backward,
  convolution_backward,
  gate_backward,
  decay_backward,
  rms_norm_backward,
  layer_norm_backward,
  gated_rms_norm_backward,
  batch_norm_backward,
  attention_backward,
  selective_scan_backward,
  chunked_scan_backward,
  delta_rule_backward,
  rg_lru_backward,
  embedding_backward,
  log_softmax_backward,
  nll_loss_backward,
  // Of optimizers.
  adamw,
  adam,
  lion,
  adafactor,
  adam_8bit,
  sgd
};

using GradientRule = void (*)(const Op& op, GradientTape& tape);

struct Saves {
  std::uint8_t operands = 0;
  std::uint8_t results = 0;
  friend bool operator==(const Saves&, const Saves&) = default;
};

struct FunctionTraits {
  Function function;
  std::string_view name;
  OpKind kind;
  double flops;
  bool linear;
  Saves saves;
  GradientRule gradient;
};

[[nodiscard]] const FunctionTraits& traits(Function function);
[[nodiscard]] std::string_view name_of(Function function);
[[nodiscard]] OpKind kind_of(const Op& op);

}  // namespace shardsim
