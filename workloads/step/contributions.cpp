#include "workloads/step/contributions.hpp"

#include <utility>

namespace shardsim {

Operand arrived(const GradientTape& tape, const Operand& result) {
  return {tape.gradient_of(result.tensor), result.dims};
}

Op op_of(Function function, std::vector<Operand> operands) {
  Op op;
  op.function = function;
  op.operands = std::move(operands);
  return op;
}

void contribute_result(Op op, const Operand& primal, GradientTape& tape,
                       std::optional<DType> dtype) {
  op.results = {tape.new_gradient(primal, dtype)};
  const TensorId gradient = op.results[0].tensor;
  tape.emit(std::move(op));
  tape.contribute(primal.tensor, gradient);
}

void contribute_sum(const Operand& dy, const Operand& addend, GradientTape& tape) {
  if (!tape.needs_gradient(addend.tensor)) return;
  if (addend.dims == dy.dims) {
    tape.contribute(addend.tensor, dy.tensor);
    return;
  }
  contribute_result(op_of(Function::sum, {dy}), addend, tape);
}

void contribute_results(Op op, const std::vector<Operand>& primals, GradientTape& tape,
                        std::optional<DType> dtype) {
  std::vector<TensorId> asked;
  for (std::size_t i = 0; i < primals.size(); ++i) {
    if (!tape.needs_gradient(primals[i].tensor)) continue;
    asked.push_back(primals[i].tensor);
    op.results.push_back(tape.new_gradient(primals[i], i == 0 ? std::nullopt : dtype));
  }
  const std::vector<Operand> results = op.results;
  const std::size_t first = results.size() - asked.size();
  tape.emit(std::move(op));
  for (std::size_t i = 0; i < asked.size(); ++i) {
    tape.contribute(asked[i], results[first + i].tensor);
  }
}

}  // namespace shardsim
