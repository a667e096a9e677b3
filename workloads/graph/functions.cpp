#include "workloads/graph/functions.hpp"

#include <array>
#include <cassert>

#include "workloads/graph/op_graph.hpp"
#include "workloads/step/gradient_rules.hpp"

namespace shardsim {
namespace {

using F = Function;
using K = OpKind;

constexpr bool is_linear = true;
constexpr bool is_not = false;
constexpr Saves nothing{};
constexpr GradientRule none = nullptr;

// clang-format off
constexpr std::array table{
    // x and weight (and a bias, which nobody reads); multiply, add
    FunctionTraits{F::matmul, "matmul", K::einsum, 2, is_not, {0b11, 0}, einsum_rule},
    FunctionTraits{F::linear, "linear", K::einsum, 2, is_not, {0b11, 0}, einsum_rule},
    FunctionTraits{F::grouped_matmul, "grouped_matmul", K::einsum, 2, is_not, {0b11, 0},
                   einsum_rule},
    FunctionTraits{F::add, "add", K::elementwise, 1, is_linear, nothing, add_rule},
    FunctionTraits{F::multiply, "multiply", K::elementwise, 1, is_not, {0b11, 0}, multiply_rule},
    // x / (1 + exp(-x))
    FunctionTraits{F::silu, "silu", K::elementwise, 4, is_not, {0b1, 0}, silu_rule},
    // x/2 (1 + tanh(a (x + b x^3)))
    FunctionTraits{F::gelu, "gelu", K::elementwise, 9, is_not, {0b1, 0}, gelu_rule},
    FunctionTraits{F::relu, "relu", K::elementwise, 1, is_not, {0, 0b1}, relu_rule},
    // r = max(x, 0), r r
    FunctionTraits{F::relu_squared, "relu_squared", K::elementwise, 2, is_not, {0b1, 0},
                   relu_squared_rule},
    FunctionTraits{F::relu6, "relu6", K::elementwise, 2, is_not, {0b1, 0}, relu6_rule},
    FunctionTraits{F::leaky_relu, "leaky_relu", K::elementwise, 2, is_not, {0b1, 0},
                   leaky_relu_rule},
    // x / (1 + exp(-a x))
    FunctionTraits{F::quick_gelu, "quick_gelu", K::elementwise, 5, is_not, {0b1, 0},
                   quick_gelu_rule},
    // exp, add, log, tanh, multiply
    FunctionTraits{F::mish, "mish", K::elementwise, 5, is_not, {0b1, 0}, mish_rule},
    // positive: a x x + b x; negative: (exp(x) - 1 - x) a + b x; softplus of both a
    FunctionTraits{F::xielu, "xielu", K::elementwise, 9, is_not, {0b111, 0}, xielu_rule},
    FunctionTraits{F::tanh, "tanh", K::elementwise, 1, is_not, {0, 0b1}, tanh_rule},
    // 1 / (1 + exp(-x))
    FunctionTraits{F::sigmoid, "sigmoid", K::elementwise, 3, is_not, {0, 0b1}, sigmoid_rule},
    // exp, add, log
    FunctionTraits{F::softplus, "softplus", K::elementwise, 3, is_not, {0b1, 0}, softplus_rule},
    FunctionTraits{F::scale, "scale", K::elementwise, 1, is_linear, nothing, scale_rule},
    // c tanh(x / c)
    FunctionTraits{F::soft_cap, "soft_cap", K::elementwise, 3, is_not, {0, 0b1}, soft_cap_rule},
    FunctionTraits{F::cast, "cast", K::elementwise, 0, is_not, nothing, cast_rule},
    FunctionTraits{F::mean, "mean", K::elementwise, 1, is_not, {0, 0b1}, mean_rule},
    // x cos + rotated x sin, of (x, cos, sin)
    FunctionTraits{F::rope, "rope", K::elementwise, 3, is_not, {0b110, 0}, rope_rule},
    FunctionTraits{F::split, "split", K::elementwise, 0, is_not, nothing, split_rule},
    FunctionTraits{F::concatenate, "concatenate", K::elementwise, 0, is_not, nothing,
                   concatenate_rule},
    FunctionTraits{F::copy, "copy", K::elementwise, 0, is_not, nothing, copy_rule},
    FunctionTraits{F::expand, "expand", K::elementwise, 0, is_not, nothing, expand_rule},
    // maximum, subtract, exp, sum, divide
    FunctionTraits{F::softmax, "softmax", K::elementwise, 5, is_not, {0, 0b1}, softmax_rule},
    // sum, divide
    FunctionTraits{F::normalize, "normalize", K::elementwise, 2, is_not, {0b1, 0b1},
                   normalize_rule},
    // x -> (largest, their numbers)
    // x -> (y, mask)
    FunctionTraits{F::dropout, "dropout", K::elementwise, 2, is_not, {0, 0b10}, dropout_rule},
    FunctionTraits{F::top_k, "top_k", K::elementwise, 1, is_not, {0, 0b10}, top_k_rule},
    // of (x, numbers)
    FunctionTraits{F::dispatch, "dispatch", K::elementwise, 0, is_not, {0b10, 0}, dispatch_rule},
    // of (rows, numbers) or, with a product and a sum, of (rows, numbers, weights)
    FunctionTraits{F::combine, "combine", K::elementwise, 2, is_not, {0b111, 0}, combine_rule},
    // of (cache, rows, ...); in place
    FunctionTraits{F::append, "append", K::elementwise, 0, is_not, nothing, none},
    // of rows and, behind them, what tells how many of them each expert gets
    FunctionTraits{F::exchange, "exchange", K::exchange, 0, is_not, nothing, exchange_rule},
    // multiply, add; (x, weight), perhaps with its bias and silu
    FunctionTraits{F::convolution, "convolution", K::elementwise, 2, is_not, {0b111, 0},
                   convolution_rule},
    // silu 4, multiply; of (x, z)
    FunctionTraits{F::gate, "gate", K::elementwise, 5, is_not, {0b11, 0}, gate_rule},
    // add, exp, add, log, exp, multiply; of (x, a, bias)
    FunctionTraits{F::decay, "decay", K::elementwise, 6, is_not, {0b111, 0}, decay_rule},
    // square, sum, scale, weight; (x, weight) -> (y, rstd)
    FunctionTraits{F::rms_norm, "rms_norm", K::norm, 4, is_not, {0b11, 0b10}, norm_rule},
    // sum, centre, square, sum, scale, weight, bias; (x, weight, bias) -> (y, mean, rstd)
    FunctionTraits{F::layer_norm, "layer_norm", K::norm, 7, is_not, {0b11, 0b110}, norm_rule},
    // a norm 4, a gate 5; (x, weight, z) -> (y, rstd)
    FunctionTraits{F::gated_rms_norm, "gated_rms_norm", K::norm, 9, is_not, {0b111, 0b10},
                   gated_norm_rule},
    // as a layer norm; of (x, weight, bias, running mean and variance)
    FunctionTraits{F::batch_norm, "batch_norm", K::norm, 7, is_not, {0b11, 0}, batch_norm_rule},
    // q.k and p.v; (q, k, v) -> (out, logsumexp), and what is added to the scores: sinks, a bias
    FunctionTraits{F::attention, "attention", K::attention, 4, is_not, {0b1111, 0b11},
                   attention_rule},
    // (x, step, b, c, log of a, skip, bias of the step) -> (y, states every 2,048 tokens)
    FunctionTraits{F::selective_scan, "selective_scan", K::scan, 0, is_not, {0b1111111, 0b10},
                   selective_scan_rule},
    // (x, step, b, c, log of a, skip, bias of the step) -> (y, states of chunks)
    FunctionTraits{F::chunked_scan, "chunked_scan", K::chunked_scan, 0, is_not, {0b1111111, 0},
                   chunked_scan_rule},
    // (q, k, v, decay, beta) -> (y, inverted products of keys, states of chunks)
    FunctionTraits{F::delta_rule, "delta_rule", K::chunked_scan, 0, is_not, {0b11111, 0b10},
                   delta_rule_rule},
    // of what the scan reads, and the state; (y, state)
    FunctionTraits{F::state_update, "state_update", K::scan, 0, is_not, nothing, none},
    // (x, logits of the input gate, of the recurrence gate, log of a) -> y
    FunctionTraits{F::rg_lru, "rg_lru", K::scan, 0, is_not, {0b1111, 0b1}, rg_lru_rule},
    // of (ids, table)
    FunctionTraits{F::embedding, "embedding", K::lookup, 0, is_not, {0b1, 0}, embedding_rule},
    // maximum, subtract, exp, sum, subtract
    FunctionTraits{F::log_softmax, "log_softmax", K::softmax_loss, 5, is_not, {0, 0b1},
                   log_softmax_rule},
    // of (log_p, targets)
    FunctionTraits{F::nll_loss, "nll_loss", K::softmax_loss, 0, is_not, {0b10, 0}, nll_loss_rule},

    FunctionTraits{F::sum, "sum", K::elementwise, 1, is_linear, nothing, none},
    // dy s (1 + x (1 - s)) with s = 1 / (1 + exp(-x))
    FunctionTraits{F::silu_backward, "silu_backward", K::elementwise, 9, is_not, nothing, none},
    FunctionTraits{F::gelu_backward, "gelu_backward", K::elementwise, 18, is_not, nothing, none},
    // dy where y > 0
    FunctionTraits{F::relu_backward, "relu_backward", K::elementwise, 1, is_not, nothing, none},
    // 2 dy max(x, 0)
    FunctionTraits{F::relu_squared_backward, "relu_squared_backward", K::elementwise, 3, is_not,
                   nothing, none},
    // dy where 0 < x < 6
    FunctionTraits{F::relu6_backward, "relu6_backward", K::elementwise, 2, is_not, nothing, none},
    // dy, or its part where x < 0
    FunctionTraits{F::leaky_relu_backward, "leaky_relu_backward", K::elementwise, 2, is_not,
                   nothing, none},
    // dy s (1 + a x (1 - s)) with s = 1 / (1 + exp(-a x))
    FunctionTraits{F::quick_gelu_backward, "quick_gelu_backward", K::elementwise, 10, is_not,
                   nothing, none},
    // dy (t + x s (1 - t^2)) with t = tanh(log(1 + exp(x))), s = 1 / (1 + exp(-x))
    FunctionTraits{F::mish_backward, "mish_backward", K::elementwise, 13, is_not, nothing, none},
    // dy times the slope, and what both numbers learn
    FunctionTraits{F::xielu_backward, "xielu_backward", K::elementwise, 16, is_not, nothing, none},
    // dy (1 - y^2)
    FunctionTraits{F::tanh_backward, "tanh_backward", K::elementwise, 3, is_not, nothing, none},
    // dy y (1 - y)
    FunctionTraits{F::sigmoid_backward, "sigmoid_backward", K::elementwise, 3, is_not, nothing,
                   none},
    // dy / (1 + exp(-x))
    FunctionTraits{F::softplus_backward, "softplus_backward", K::elementwise, 4, is_not, nothing,
                   none},
    // dy (1 - (y / c)^2)
    FunctionTraits{F::soft_cap_backward, "soft_cap_backward", K::elementwise, 4, is_not, nothing,
                   none},
    FunctionTraits{F::softmax_backward, "softmax_backward", K::elementwise, 4, is_not, nothing,
                   none},
    FunctionTraits{F::normalize_backward, "normalize_backward", K::elementwise, 4, is_not, nothing,
                   none},
    // of (dy, mask)
    FunctionTraits{F::dropout_backward, "dropout_backward", K::elementwise, 2, is_not, nothing, none},
    FunctionTraits{F::top_k_backward, "top_k_backward", K::elementwise, 0, is_not, nothing, none},
    FunctionTraits{F::dispatch_backward, "dispatch_backward", K::elementwise, 1, is_not, nothing,
                   none},
    // dy weights, sum(dy rows)
    FunctionTraits{F::combine_backward, "combine_backward", K::elementwise, 3, is_not, nothing,
                   none},
    FunctionTraits{F::mean_backward, "mean_backward", K::elementwise, 1, is_not, nothing, none},
    FunctionTraits{F::rope_backward, "rope_backward", K::elementwise, 3, is_not, nothing, none},
    FunctionTraits{F::convolution_backward, "convolution_backward", K::elementwise, 4, is_not,
                   nothing, none},
    // the gate again, and of both
    FunctionTraits{F::gate_backward, "gate_backward", K::elementwise, 11, is_not, nothing, none},
    FunctionTraits{F::decay_backward, "decay_backward", K::elementwise, 12, is_not, nothing, none},
    FunctionTraits{F::rms_norm_backward, "rms_norm_backward", K::norm, 9, is_not, nothing, none},
    FunctionTraits{F::layer_norm_backward, "layer_norm_backward", K::norm, 12, is_not, nothing,
                   none},
    FunctionTraits{F::gated_rms_norm_backward, "gated_rms_norm_backward", K::norm, 20, is_not,
                   nothing, none},
    FunctionTraits{F::batch_norm_backward, "batch_norm_backward", K::norm, 12, is_not, nothing,
                   none},
    // q.k again, dv, dp, dq, dk
    FunctionTraits{F::attention_backward, "attention_backward", K::attention, 10, is_not, nothing,
                   none},
    FunctionTraits{F::selective_scan_backward, "selective_scan_backward", K::scan, 0, is_not,
                   nothing, none},
    FunctionTraits{F::chunked_scan_backward, "chunked_scan_backward", K::chunked_scan, 0, is_not,
                   nothing, none},
    FunctionTraits{F::delta_rule_backward, "delta_rule_backward", K::chunked_scan, 0, is_not,
                   nothing, none},
    FunctionTraits{F::rg_lru_backward, "rg_lru_backward", K::scan, 0, is_not, nothing, none},
    FunctionTraits{F::embedding_backward, "embedding_backward", K::lookup, 0, is_linear, nothing,
                   none},
    FunctionTraits{F::log_softmax_backward, "log_softmax_backward", K::softmax_loss, 4, is_not,
                   nothing, none},
    FunctionTraits{F::nll_loss_backward, "nll_loss_backward", K::softmax_loss, 0, is_not, nothing,
                   none},

    // two moments 3 + 4, their correction 2, root, epsilon, quotient, decay and step 2
    FunctionTraits{F::adamw, "adamw", K::optimizer, 14, is_not, nothing, none},
    // as adamw, without decay
    FunctionTraits{F::adam, "adam", K::optimizer, 13, is_not, nothing, none},
    // two interpolations 3 + 3, sign, decay and step 3 (arXiv:2302.06675, algorithm 2)
    FunctionTraits{F::lion, "lion", K::optimizer, 10, is_not, nothing, none},
    // square 2, sums of rows and columns 2, their quotient and root 3, mean square and clip of
    // the update 4, decay and step 2 (arXiv:1804.04235, algorithm 4)
    FunctionTraits{F::adafactor, "adafactor", K::optimizer, 13, is_not, nothing, none},
    // adamw, and of both moments look-up, scale, largest and search of the nearest code, 4 each
    FunctionTraits{F::adam_8bit, "adam_8bit", K::optimizer, 22, is_not, nothing, none},
    // momentum 2, step 2
    FunctionTraits{F::sgd, "sgd", K::optimizer, 4, is_not, nothing, none},
};
// clang-format on

constexpr bool is_in_order() {
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (static_cast<std::size_t>(table[i].function) != i) return false;
  }
  return table.size() == static_cast<std::size_t>(F::sgd) + 1;
}
static_assert(is_in_order(), "a row for each function, in the order of the enum");

}  // namespace

const FunctionTraits& traits(Function function) {
  return table[static_cast<std::size_t>(function)];
}

std::string_view name_of(Function function) { return traits(function).name; }

OpKind kind_of(const Op& op) { return traits(op.function).kind; }

}  // namespace shardsim
