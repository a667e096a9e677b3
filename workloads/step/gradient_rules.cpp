#include "workloads/step/gradient_rules.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include "workloads/graph/op_costs.hpp"

namespace shardsim {
namespace {

// The gradient that has arrived for a result, seen under the labels that the op gives the result.
Operand arrived(const GradientTape& tape, const Operand& result) {
  return {tape.gradient_of(result.tensor), result.dims};
}

Op elementwise_op(std::string function, std::vector<Operand> operands, double flops) {
  Op op;
  op.function = std::move(function);
  op.operands = std::move(operands);
  op.flops_per_point = flops;
  return op;
}

// Emits `op` with one result, a contribution to the gradient of `primal`.
void contribute_result(Op op, const Operand& primal, GradientTape& tape,
                       std::optional<DType> dtype = {}) {
  op.results = {tape.new_gradient(primal, dtype)};
  const TensorId gradient = op.results[0].tensor;
  tape.emit(std::move(op));
  tape.contribute(primal.tensor, gradient);
}

// dy summed over the labels that `addend` lacks; dy itself when it lacks none.
void contribute_sum(const Operand& dy, const Operand& addend, GradientTape& tape) {
  if (!tape.needs_gradient(addend.tensor)) return;
  if (addend.dims == dy.dims) {
    tape.contribute(addend.tensor, dy.tensor);
    return;
  }
  Op sum = elementwise_op("sum", {dy}, add_flops);
  sum.linear = true;
  contribute_result(std::move(sum), addend, tape);
}

void einsum_rule(const Op& op, GradientTape& tape) {
  const Operand dy = arrived(tape, op.results[0]);
  for (std::size_t i = 0; i < 2; ++i) {
    if (!tape.needs_gradient(op.operands[i].tensor)) continue;
    Op product;
    product.kind = OpKind::einsum;
    product.function = "matmul";
    product.operands = {dy, op.operands[1 - i]};
    product.flops_per_point = einsum_flops;
    contribute_result(std::move(product), op.operands[i], tape);
  }
  if (op.operands.size() == 3) contribute_sum(dy, op.operands[2], tape);
}

void add_rule(const Op& op, GradientTape& tape) {
  const Operand dy = arrived(tape, op.results[0]);
  for (const Operand& addend : op.operands) contribute_sum(dy, addend, tape);
}

void multiply_rule(const Op& op, GradientTape& tape) {
  const Operand dy = arrived(tape, op.results[0]);
  for (std::size_t i = 0; i < 2; ++i) {
    if (!tape.needs_gradient(op.operands[i].tensor)) continue;
    contribute_result(elementwise_op("multiply", {dy, op.operands[1 - i]}, multiply_flops),
                      op.operands[i], tape);
  }
}

void silu_rule(const Op& op, GradientTape& tape) {
  const Operand dy = arrived(tape, op.results[0]);
  contribute_result(elementwise_op("silu_backward", {dy, op.operands[0]}, silu_backward_flops),
                    op.operands[0], tape);
}

void gelu_rule(const Op& op, GradientTape& tape) {
  const Operand dy = arrived(tape, op.results[0]);
  contribute_result(elementwise_op("gelu_backward", {dy, op.operands[0]}, gelu_backward_flops),
                    op.operands[0], tape);
}

void cast_rule(const Op& op, GradientTape& tape) {
  contribute_result(elementwise_op("cast", {arrived(tape, op.results[0])}, 0), op.operands[0],
                    tape);
}

void mean_rule(const Op& op, GradientTape& tape) {
  contribute_result(elementwise_op("mean_backward", {arrived(tape, op.results[0])}, multiply_flops),
                    op.operands[0], tape);
}

// The rotation the other way round: only the tables are read.
void rope_rule(const Op& op, GradientTape& tape) {
  Op back = elementwise_op(
      "rope_backward", {arrived(tape, op.results[0]), op.operands[1], op.operands[2]}, rope_flops);
  back.whole = op.whole;
  contribute_result(std::move(back), op.operands[0], tape);
}

// Views have no storage of their own, gradients of views do: they are copied together.
void split_rule(const Op& op, GradientTape& tape) {
  std::vector<Operand> parts;
  for (const Operand& result : op.results) {
    parts.push_back(arrived(tape, result));
    assert(parts.back().tensor != no_tensor);
  }
  Op back = elementwise_op("concatenate", std::move(parts), 0);
  back.whole = op.whole;
  contribute_result(std::move(back), op.operands[0], tape);
}

// Gradients of every operand in `primals`, made by one op; `dtype` is of all but the first.
void contribute_results(Op op, const std::vector<Operand>& primals, GradientTape& tape,
                        std::optional<DType> dtype = {}) {
  for (const Operand& primal : primals) {
    const bool first = op.results.empty();
    op.results.push_back(tape.new_gradient(primal, first ? std::nullopt : dtype));
  }
  const std::vector<Operand> gradients = op.results;
  tape.emit(std::move(op));
  for (std::size_t i = 0; i < primals.size(); ++i) {
    tape.contribute(primals[i].tensor, gradients[i].tensor);
  }
}

// Forward: x, weight (, bias) -> y (, mean), rstd.
void norm_rule(const Op& op, GradientTape& tape) {
  const bool has_mean = op.function == "layer_norm";
  Op back;
  back.kind = OpKind::norm;
  back.function = op.function + "_backward";
  back.operands = {arrived(tape, op.results[0]), op.operands[0]};
  back.operands.insert(back.operands.end(), op.results.begin() + 1, op.results.end());
  back.operands.push_back(op.operands[1]);
  const Statistic& rows = op.statistics[0];
  back.statistics = {{"sum of gradient times input", rows.over, rows.dims, rows.dtype}};
  if (has_mean) back.statistics.push_back({"sum of gradient", rows.over, rows.dims, rows.dtype});
  back.flops_per_point = has_mean ? layer_norm_backward_flops : rms_norm_backward_flops;
  contribute_results(std::move(back), op.operands, tape, op.weight_dtype);
}

void attention_rule(const Op& op, GradientTape& tape) {
  Op back;
  back.kind = OpKind::attention;
  back.function = "attention_backward";
  back.operands = {arrived(tape, op.results[0])};
  back.operands.insert(back.operands.end(), op.operands.begin(), op.operands.end());
  back.operands.insert(back.operands.end(), op.results.begin(), op.results.end());
  back.whole = op.whole;
  back.flops_per_point = attention_backward_flops;
  back.work_fraction = op.work_fraction;
  contribute_results(std::move(back), op.operands, tape);
}

void embedding_rule(const Op& op, GradientTape& tape) {
  Op back;
  back.kind = OpKind::lookup;
  back.function = "embedding_backward";
  back.linear = true;
  back.operands = {arrived(tape, op.results[0]), op.operands[0]};
  contribute_result(std::move(back), op.operands[1], tape, op.weight_dtype);
}

// The sum over classes of the incoming gradient, which log_softmax's derivative asks for, is known
// from the targets: nothing is reduced over shards of the classes (as in PyTorch's loss_parallel).
void log_softmax_rule(const Op& op, GradientTape& tape) {
  Op back;
  back.kind = OpKind::softmax_loss;
  back.function = "log_softmax_backward";
  back.operands = {arrived(tape, op.results[0]), op.results[0]};
  back.flops_per_point = log_softmax_backward_flops;
  contribute_result(std::move(back), op.operands[0], tape);
}

// The loss's own gradient is one.
void nll_loss_rule(const Op& op, GradientTape& tape) {
  Op back;
  back.kind = OpKind::softmax_loss;
  back.function = "nll_loss_backward";
  back.operands = {op.operands[1]};
  contribute_result(std::move(back), op.operands[0], tape);
}

constexpr std::array<std::pair<std::string_view, GradientRule>, 16> rules{{
    {"matmul", einsum_rule},
    {"linear", einsum_rule},
    {"add", add_rule},
    {"multiply", multiply_rule},
    {"silu", silu_rule},
    {"gelu", gelu_rule},
    {"cast", cast_rule},
    {"mean", mean_rule},
    {"rope", rope_rule},
    {"split", split_rule},
    {"rms_norm", norm_rule},
    {"layer_norm", norm_rule},
    {"attention", attention_rule},
    {"embedding", embedding_rule},
    {"log_softmax", log_softmax_rule},
    {"nll_loss", nll_loss_rule},
}};

}  // namespace

GradientRule gradient_rule(std::string_view function) {
  const auto* rule = std::find_if(rules.begin(), rules.end(),
                                  [&](const auto& row) { return row.first == function; });
  assert(rule != rules.end());
  return rule->second;
}

}  // namespace shardsim
