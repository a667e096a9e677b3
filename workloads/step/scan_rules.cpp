// Rules of differentiation of mixers: convolutions, gates, scans.
#include <initializer_list>
#include <utility>
#include <vector>

#include "workloads/step/contributions.hpp"
#include "workloads/step/gradient_rules.hpp"

namespace shardsim {
namespace {

// One kernel that reads dy and what the table says is saved, and gives every operand its gradient.
Op backward_kernel(const Op& op, Function function, const GradientTape& tape) {
  Op back = op_of(function, {arrived(tape, op.results[0])});
  const Saves saves = traits(op.function).saves;
  const auto read = [&](const std::vector<Operand>& tensors, unsigned saved) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if ((saved >> i & 1U) != 0) back.operands.push_back(tensors[i]);
    }
  };
  read(op.operands, saves.operands);
  read(op.results, saves.results);
  back.whole = op.whole;
  return back;
}

// Each product of the forward pass, as often as the backward one needs it.
std::vector<Operations> repeated(std::vector<Operations> work,
                                 std::initializer_list<double> times) {
  const double* each = times.begin();
  for (Operations& product : work) product.flops *= *each++;
  return work;
}

// Gradients of the operands, and those of the states of chunks, which lie in memory meanwhile.
void contribute_with_states(Op back, const Op& op, const Operand& states, GradientTape& tape) {
  back.results = {tape.new_gradient(states)};
  contribute_results(std::move(back), op.operands, tape);
}

}  // namespace

// A copy's gradient is the copy's.
void copy_rule(const Op& op, GradientTape& tape) {
  tape.contribute(op.operands[0].tensor, tape.gradient_of(op.results[0].tensor));
}

// With silu the sum over the taps is made again: of x and of the taps it is one pass each.
void convolution_rule(const Op& op, GradientTape& tape) {
  Op back = backward_kernel(op, Function::convolution_backward, tape);
  if (!op.work.empty()) {
    constexpr double silu_backward = 9;
    back.work = repeated(op.work, {3, silu_backward / op.work[1].flops});
  }
  contribute_results(std::move(back), op.operands, tape);
}

void gate_rule(const Op& op, GradientTape& tape) {
  contribute_results(backward_kernel(op, Function::gate_backward, tape), op.operands, tape);
}

void decay_rule(const Op& op, GradientTape& tape) {
  contribute_results(backward_kernel(op, Function::decay_backward, tape), op.operands, tape);
}

void xielu_rule(const Op& op, GradientTape& tape) {
  contribute_results(backward_kernel(op, Function::xielu_backward, tape), op.operands, tape);
}

void gated_norm_rule(const Op& op, GradientTape& tape) {
  Op back = backward_kernel(op, Function::gated_rms_norm_backward, tape);
  const Statistic& rows = op.statistics[0];
  back.statistics = {{"sum of gradient times input", rows.over, rows.dims, rows.dtype}};
  contribute_results(std::move(back), op.operands, tape);
}

// Forward 9 at every state (layers/mamba.hpp). Backward the states again, 6: step * a, exp, times
// x, b and step 2, a * h + . 2. Their gradient, a * dh + c * dy, 3; of c, b and x 2 each; of a and
// of the step, by way of the exponential, 3 each: 21.
void selective_scan_rule(const Op& op, GradientTape& tape) {
  Op back = backward_kernel(op, Function::selective_scan_backward, tape);
  back.work = repeated(op.work, {21.0 / 9});
  contribute_results(std::move(back), op.operands, tape);
}

// Forward 17 a number (layers/recurrent_block.hpp). Backward all but the recurrence again, 15; that
// of the states' gradient 2; of the gated input 3 and its gate's sigmoid 3; of a 1, of the root's
// 5, through both exponentials 2; of the other gate 4 and of the log of a 1: 36.
void rg_lru_rule(const Op& op, GradientTape& tape) {
  Op back = backward_kernel(op, Function::rg_lru_backward, tape);
  back.work = repeated(op.work, {36.0 / 17});
  contribute_results(std::move(back), op.operands, tape);
}

// Products of mamba_ssm's ssd_combined.py. Forward c.b within a chunk, that times x, and two of
// states: x.b, and c with states. Backward: c.b again and its gradient to b and c; of scores to x,
// to scores and to decays; of states x.b again, and the gradients of states, x, b and c.
void chunked_scan_rule(const Op& op, GradientTape& tape) {
  Op back = backward_kernel(op, Function::chunked_scan_backward, tape);
  back.work = repeated(op.work, {3, 3, 5.0 / 2});
  contribute_with_states(std::move(back), op, op.results[1], tape);
}

// Products of flash-linear-attention's chunk.py, of a token and head with chunks of c, keys of K
// and values of V, what is c x c alone left out as in the forward formula (layers/delta_net.hpp).
//
//   forward   6 K V + 2 c (3 K + 2 V): k.k, w, q.k; u, scores times values; states twice, output
//   backward  w, u and the states again             4 K V + 2 c (K + V)
//             of values in a chunk: q.k, scores             2 c (K + V)
//             of the states                         6 K V
//             of q, k and w                         6 K V + 2 c (2 K + V)
//             of w and u, of keys and values in them        2 c (2 K + 2 V)
//             of the inverted products, to keys             2 c (2 K)
//   together                                       16 K V + 2 c (8 K + 5 V)
void delta_rule_rule(const Op& op, GradientTape& tape) {
  Op back = backward_kernel(op, Function::delta_rule_backward, tape);
  back.work = repeated(op.work, {16.0 / 6, 8.0 / 3, 5.0 / 2});
  contribute_with_states(std::move(back), op, op.results[2], tape);
}

}  // namespace shardsim
