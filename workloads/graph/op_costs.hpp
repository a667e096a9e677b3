// Arithmetic per point of an op's space. An exponential, a root or a hyperbolic tangent counts as
// one operation. Only einsum and attention are ever bound by these; the rest is bound by memory.
#pragma once

namespace shardsim {

inline constexpr double einsum_flops = 2;               // multiply, add
inline constexpr double attention_flops = 4;            // q.k and p.v
inline constexpr double attention_backward_flops = 10;  // q.k again, dv, dp, dq, dk
inline constexpr double add_flops = 1;
inline constexpr double multiply_flops = 1;
inline constexpr double silu_flops = 4;           // x / (1 + exp(-x))
inline constexpr double silu_backward_flops = 9;  // dy s (1 + x (1 - s)) with s = 1 / (1 + exp(-x))
inline constexpr double gelu_flops = 9;           // x/2 (1 + tanh(a (x + b x^3)))
inline constexpr double gelu_backward_flops = 18;
inline constexpr double rope_flops = 3;      // x cos + rotated x sin
inline constexpr double rms_norm_flops = 4;  // square, sum, scale, weight
inline constexpr double rms_norm_backward_flops = 9;
inline constexpr double layer_norm_flops = 7;  // sum, centre, square, sum, scale, weight, bias
inline constexpr double layer_norm_backward_flops = 12;
inline constexpr double log_softmax_flops = 5;  // maximum, subtract, exp, sum, subtract
inline constexpr double log_softmax_backward_flops = 4;
inline constexpr double adamw_flops = 14;  // two moments 3 + 4, their correction 2, root, epsilon,
                                           // quotient, decay and step 2
inline constexpr double sgd_flops = 4;     // momentum 2, step 2

}  // namespace shardsim
