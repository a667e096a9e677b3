// The rules of differentiation, one per function of a forward op; graph/functions.cpp says which is
// whose.
//
//   forward                            backward
//   y = einsum(x, w)                   dx = einsum(dy, w), dw = einsum(dy, x): the labels say what
//                                      is summed
//   y = x + bias                       dbias = sum(dy) over the labels that the bias lacks
//   y = a + b                          da = db = dy, no op
//   y = a * b                          da = dy * b, db = dy * a
//   y = f(x), silu, gelu ...           dx = f_backward(dy, x)
//   y = f(x), relu or soft_cap         dx = f_backward(dy, y)
//   y = c x                            dx = c dy
//   y = softmax(x), normalize(x)       dx = f_backward(dy, y), (dy, x, y)
//   parts = split(x)                   dx = concatenate(dparts); the other way round a view
//   y, mask = dropout(x)              dx = dropout_backward(dy, mask)
//   w, n = top_k(x)                    dx = top_k_backward(dw, n)
//   r = dispatch(x, n)                 dx = dispatch_backward(dr, n)
//   y = combine(r, n, w)               dr, dw = combine_backward(dy, n, r, w)
//   s, t = exchange(q, r, numbers)     dq, dr = exchange(ds, dt), back
//   y = expand(x)                      dx = sum(dy)
//   y, rstd = rms_norm(x, w)           dx, dw = rms_norm_backward(dy, x, rstd, w); layer_norm
//                                      likewise
//   o, l = attention(q, k, v)          dq, dk, dv = attention_backward(do, q, k, v, o, l), as
//                                      FlashAttention
//   y = copy(x)                        dx = dy, no op
//   y = convolution(x, w)              dx, dw = convolution_backward(dy, x, w); so of decay, gate
//   y, rstd = gated_rms_norm(x, w, z)  dx, dw, dz = gated_rms_norm_backward(dy, x, w, z, rstd)
//   y, kept = scan(x, ...)             dx, ... = scan_backward(dy, x, ..., kept)
//   y = embedding(ids, w)              dw = embedding_backward(dy, ids): dense, as PyTorch makes it
//
// A backward op names the forward tensors that it reads; these are what must be kept (or computed
// again). They are the tensors that PyTorch's autograd saves, and what FunctionTraits::saves lists.
#pragma once

#include "workloads/step/gradient_tape.hpp"

namespace shardsim {

void einsum_rule(const Op& op, GradientTape& tape);
void add_rule(const Op& op, GradientTape& tape);
void multiply_rule(const Op& op, GradientTape& tape);
void silu_rule(const Op& op, GradientTape& tape);
void gelu_rule(const Op& op, GradientTape& tape);
void relu_rule(const Op& op, GradientTape& tape);
void relu_squared_rule(const Op& op, GradientTape& tape);
void relu6_rule(const Op& op, GradientTape& tape);
void leaky_relu_rule(const Op& op, GradientTape& tape);
void quick_gelu_rule(const Op& op, GradientTape& tape);
void mish_rule(const Op& op, GradientTape& tape);
void xielu_rule(const Op& op, GradientTape& tape);
void tanh_rule(const Op& op, GradientTape& tape);
void sigmoid_rule(const Op& op, GradientTape& tape);
void softplus_rule(const Op& op, GradientTape& tape);
void scale_rule(const Op& op, GradientTape& tape);
void soft_cap_rule(const Op& op, GradientTape& tape);
void cast_rule(const Op& op, GradientTape& tape);
void mean_rule(const Op& op, GradientTape& tape);
void rope_rule(const Op& op, GradientTape& tape);
void split_rule(const Op& op, GradientTape& tape);
void concatenate_rule(const Op& op, GradientTape& tape);
void expand_rule(const Op& op, GradientTape& tape);
void softmax_rule(const Op& op, GradientTape& tape);
void normalize_rule(const Op& op, GradientTape& tape);
void dropout_rule(const Op& op, GradientTape& tape);
void top_k_rule(const Op& op, GradientTape& tape);
void dispatch_rule(const Op& op, GradientTape& tape);
void combine_rule(const Op& op, GradientTape& tape);
void exchange_rule(const Op& op, GradientTape& tape);
void norm_rule(const Op& op, GradientTape& tape);
void batch_norm_rule(const Op& op, GradientTape& tape);
void attention_rule(const Op& op, GradientTape& tape);
void embedding_rule(const Op& op, GradientTape& tape);
void log_softmax_rule(const Op& op, GradientTape& tape);
void nll_loss_rule(const Op& op, GradientTape& tape);
// Of mixers (scan_rules.cpp).
void copy_rule(const Op& op, GradientTape& tape);
void convolution_rule(const Op& op, GradientTape& tape);
void gate_rule(const Op& op, GradientTape& tape);
void decay_rule(const Op& op, GradientTape& tape);
void gated_norm_rule(const Op& op, GradientTape& tape);
void selective_scan_rule(const Op& op, GradientTape& tape);
void chunked_scan_rule(const Op& op, GradientTape& tape);
void delta_rule_rule(const Op& op, GradientTape& tape);
void rg_lru_rule(const Op& op, GradientTape& tape);

}  // namespace shardsim
