#include "workloads/step/gradient_rules.hpp"

#include <cassert>
#include <utility>

#include "workloads/step/contributions.hpp"

namespace shardsim {

void einsum_rule(const Op& op, GradientTape& tape) {
  const Operand dy = arrived(tape, op.results[0]);
  const bool grouped = op.function == Function::grouped_matmul;
  for (std::size_t i = 0; i < 2; ++i) {
    if (!tape.needs_gradient(op.operands[i].tensor)) continue;
    Op back = op_of(grouped ? op.function : Function::matmul, {dy, op.operands[1 - i]});
    back.work_fraction = op.work_fraction;
    // A weight may lie in the narrow type that products read; its gradient is none.
    std::optional<DType> dtype;
    if (op.multiplied_in) dtype = tape.dtype_of(dy.tensor);
    contribute_result(std::move(back), op.operands[i], tape, dtype);
  }
  if (op.operands.size() < 3) return;
  if (!grouped) return contribute_sum(dy, op.operands[2], tape);
  if (!tape.needs_gradient(op.operands[2].tensor)) return;
  Op sum = op_of(Function::sum, {dy});
  sum.work_fraction = op.work_fraction;
  contribute_result(std::move(sum), op.operands[2], tape);
}

// To a narrower addend, as what blocks make beside a residual stream in fp32, it is cast.
void add_rule(const Op& op, GradientTape& tape) {
  const Operand dy = arrived(tape, op.results[0]);
  const DType made = tape.dtype_of(op.results[0].tensor);
  for (const Operand& addend : op.operands) {
    const bool is_cast = tape.dtype_of(addend.tensor) != made && addend.dims == dy.dims;
    if (!is_cast) {
      contribute_sum(dy, addend, tape);
    } else if (tape.needs_gradient(addend.tensor)) {
      contribute_result(op_of(Function::cast, {dy}), addend, tape);
    }
  }
}

void multiply_rule(const Op& op, GradientTape& tape) {
  const Operand dy = arrived(tape, op.results[0]);
  for (std::size_t i = 0; i < 2; ++i) {
    if (!tape.needs_gradient(op.operands[i].tensor)) continue;
    contribute_result(op_of(Function::multiply, {dy, op.operands[1 - i]}), op.operands[i], tape);
  }
}

namespace {

// Of functions of one tensor whose backward pass reads what they read, or what they made.
void from_input(Function backward, const Op& op, GradientTape& tape) {
  contribute_result(op_of(backward, {arrived(tape, op.results[0]), op.operands[0]}), op.operands[0],
                    tape);
}

void from_result(Function backward, const Op& op, GradientTape& tape) {
  contribute_result(op_of(backward, {arrived(tape, op.results[0]), op.results[0]}), op.operands[0],
                    tape);
}

}  // namespace

void silu_rule(const Op& op, GradientTape& tape) { from_input(Function::silu_backward, op, tape); }

void gelu_rule(const Op& op, GradientTape& tape) { from_input(Function::gelu_backward, op, tape); }

void relu_rule(const Op& op, GradientTape& tape) { from_result(Function::relu_backward, op, tape); }

void relu_squared_rule(const Op& op, GradientTape& tape) {
  from_input(Function::relu_squared_backward, op, tape);
}

void relu6_rule(const Op& op, GradientTape& tape) {
  from_input(Function::relu6_backward, op, tape);
}

void leaky_relu_rule(const Op& op, GradientTape& tape) {
  from_input(Function::leaky_relu_backward, op, tape);
}

void quick_gelu_rule(const Op& op, GradientTape& tape) {
  from_input(Function::quick_gelu_backward, op, tape);
}

void mish_rule(const Op& op, GradientTape& tape) { from_input(Function::mish_backward, op, tape); }

void tanh_rule(const Op& op, GradientTape& tape) { from_result(Function::tanh_backward, op, tape); }

void sigmoid_rule(const Op& op, GradientTape& tape) {
  from_result(Function::sigmoid_backward, op, tape);
}

void softplus_rule(const Op& op, GradientTape& tape) {
  from_input(Function::softplus_backward, op, tape);
}

void scale_rule(const Op& op, GradientTape& tape) {
  contribute_result(op_of(Function::scale, {arrived(tape, op.results[0])}), op.operands[0], tape);
}

void soft_cap_rule(const Op& op, GradientTape& tape) {
  from_result(Function::soft_cap_backward, op, tape);
}

void cast_rule(const Op& op, GradientTape& tape) {
  contribute_result(op_of(Function::cast, {arrived(tape, op.results[0])}), op.operands[0], tape);
}

void mean_rule(const Op& op, GradientTape& tape) {
  // A loss's own gradient is one: what there is to read is its number of values, as long as it.
  const Operand dy = arrived(tape, op.results[0]);
  contribute_result(op_of(Function::mean_backward, {dy.tensor == no_tensor ? op.results[0] : dy}),
                    op.operands[0], tape);
}

// The rotation the other way round: only the tables are read.
void rope_rule(const Op& op, GradientTape& tape) {
  Op back = op_of(Function::rope_backward,
                  {arrived(tape, op.results[0]), op.operands[1], op.operands[2]});
  back.whole = op.whole;
  contribute_result(std::move(back), op.operands[0], tape);
}

// Views have no storage of their own, gradients of views do: they are copied together.
// Of a view of all that is seen as it is: a view.
void whole_view_rule(const Op& op, GradientTape& tape) {
  Op back = op_of(Function::split, {arrived(tape, op.results[0])});
  back.view = true;
  contribute_result(std::move(back), op.operands[0], tape);
}

void split_rule(const Op& op, GradientTape& tape) {
  if (op.view && op.results.size() == 1 && op.results[0].dims == op.operands[0].dims) {
    whole_view_rule(op, tape);
    return;
  }
  std::vector<Operand> parts;
  for (const Operand& result : op.results) {
    parts.push_back(arrived(tape, result));
    assert(parts.back().tensor != no_tensor);
  }
  Op back = op_of(Function::concatenate, std::move(parts));
  back.whole = op.whole;
  contribute_result(std::move(back), op.operands[0], tape);
}

// The other way round: parts of the gradient are views of it.
void concatenate_rule(const Op& op, GradientTape& tape) {
  Op back = op_of(Function::split, {arrived(tape, op.results[0])});
  back.whole = op.whole;
  back.view = true;
  contribute_results(std::move(back), op.operands, tape);
}

void expand_rule(const Op& op, GradientTape& tape) {
  contribute_sum(arrived(tape, op.results[0]), op.operands[0], tape);
}

void softmax_rule(const Op& op, GradientTape& tape) {
  Op back = op_of(Function::softmax_backward, {arrived(tape, op.results[0]), op.results[0]});
  back.whole = op.whole;
  contribute_result(std::move(back), op.operands[0], tape);
}

void normalize_rule(const Op& op, GradientTape& tape) {
  Op back = op_of(Function::normalize_backward,
                  {arrived(tape, op.results[0]), op.operands[0], op.results[0]});
  back.whole = op.whole;
  contribute_result(std::move(back), op.operands[0], tape);
}

void dropout_rule(const Op& op, GradientTape& tape) {
  contribute_result(
      op_of(Function::dropout_backward, {arrived(tape, op.results[0]), op.results[1]}),
      op.operands[0], tape);
}

// Zero, but for what was chosen.
void top_k_rule(const Op& op, GradientTape& tape) {
  Op back = op_of(Function::top_k_backward, {arrived(tape, op.results[0]), op.results[1]});
  back.whole = op.whole;
  contribute_result(std::move(back), op.operands[0], tape);
}

// A token's gradient is the sum of its rows'.
void dispatch_rule(const Op& op, GradientTape& tape) {
  Op back = op_of(Function::dispatch_backward, {arrived(tape, op.results[0]), op.operands[1]});
  back.whole = op.whole;
  contribute_result(std::move(back), op.operands[0], tape);
}

// Of rows and, where they are weighted, of the weights.
void combine_rule(const Op& op, GradientTape& tape) {
  Op back = op_of(Function::combine_backward, {arrived(tape, op.results[0]), op.operands[1]});
  back.whole = op.whole;
  if (op.operands.size() < 3) {
    return contribute_result(std::move(back), op.operands[0], tape);
  }
  back.operands.push_back(op.operands[0]);
  back.operands.push_back(op.operands[2]);
  contribute_results(std::move(back), {op.operands[0], op.operands[2]}, tape);
}

// The way back.
void exchange_rule(const Op& op, GradientTape& tape) {
  std::vector<Operand> rows;
  Op back = op_of(Function::exchange, {});
  for (std::size_t i = 0; i < op.results.size(); ++i) {
    if (!tape.needs_gradient(op.operands[i].tensor)) continue;
    rows.push_back(op.operands[i]);
    back.operands.push_back(arrived(tape, op.results[i]));
  }
  contribute_results(std::move(back), rows, tape);
}

// Forward: x (, weight (, bias)) -> y (, mean), rstd.
void norm_rule(const Op& op, GradientTape& tape) {
  const bool has_mean = op.function == Function::layer_norm;
  Op back = op_of(has_mean ? Function::layer_norm_backward : Function::rms_norm_backward,
                  {arrived(tape, op.results[0]), op.operands[0]});
  back.operands.insert(back.operands.end(), op.results.begin() + 1, op.results.end());
  if (op.operands.size() > 1) back.operands.push_back(op.operands[1]);
  const Statistic& rows = op.statistics[0];
  back.statistics = {{"sum of gradient times input", rows.over, rows.dims, rows.dtype}};
  if (has_mean) back.statistics.push_back({"sum of gradient", rows.over, rows.dims, rows.dtype});
  contribute_results(std::move(back), op.operands, tape, op.weight_dtype);
}

// Forward: x, weight, bias, and running means that learn nothing -> y.
void batch_norm_rule(const Op& op, GradientTape& tape) {
  Op back = op_of(Function::batch_norm_backward,
                  {arrived(tape, op.results[0]), op.operands[0], op.operands[1]});
  contribute_results(std::move(back), {op.operands[0], op.operands[1], op.operands[2]}, tape,
                     op.weight_dtype);
}

void attention_rule(const Op& op, GradientTape& tape) {
  Op back = op_of(Function::attention_backward, {arrived(tape, op.results[0])});
  back.operands.insert(back.operands.end(), op.operands.begin(), op.operands.end());
  back.operands.insert(back.operands.end(), op.results.begin(), op.results.end());
  back.whole = op.whole;
  back.work_fraction = op.work_fraction;
  back.documents = op.documents;
  back.drops = op.drops;
  contribute_results(std::move(back), op.operands, tape);
}

void embedding_rule(const Op& op, GradientTape& tape) {
  contribute_result(
      op_of(Function::embedding_backward, {arrived(tape, op.results[0]), op.operands[0]}),
      op.operands[1], tape, op.weight_dtype);
}

// The sum over classes of the incoming gradient, which log_softmax's derivative asks for, is known
// from the targets: nothing is reduced over shards of the classes (as in PyTorch's loss_parallel).
void log_softmax_rule(const Op& op, GradientTape& tape) {
  contribute_result(
      op_of(Function::log_softmax_backward, {arrived(tape, op.results[0]), op.results[0]}),
      op.operands[0], tape);
}

// The loss's own gradient is one.
void nll_loss_rule(const Op& op, GradientTape& tape) {
  contribute_result(op_of(Function::nll_loss_backward, {op.operands[1]}), op.operands[0], tape);
}

}  // namespace shardsim
