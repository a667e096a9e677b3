// The rules of differentiation: one per function of a forward op, a row each in a table.
//
//   forward                     backward
//   y = einsum(x, w)            dx = einsum(dy, w), dw = einsum(dy, x): the labels say what is
//   summed y = x + bias                dbias = sum(dy) over the labels that the bias lacks y = a +
//   b                   da = db = dy, no op y = a * b                   da = dy * b, db = dy * a y
//   = f(x), silu or gelu      dx = f_backward(dy, x) y, rstd = rms_norm(x, w)    dx, dw =
//   rms_norm_backward(dy, x, rstd, w); layer_norm likewise o, l = attention(q, k, v)   dq, dk, dv =
//   attention_backward(do, q, k, v, o, l): FlashAttention y = embedding(ids, w)       dw =
//   embedding_backward(dy, ids): dense, as PyTorch makes it
//
// A backward op names the forward tensors that it reads; these are what must be kept (or computed
// again). They are the tensors that PyTorch's autograd saves.
#pragma once

#include <string_view>

#include "workloads/step/gradient_tape.hpp"

namespace shardsim {

using GradientRule = void (*)(const Op& op, GradientTape& tape);

// Asserts that the function has a rule: every function of GraphBuilder does.
[[nodiscard]] GradientRule gradient_rule(std::string_view function);

}  // namespace shardsim
