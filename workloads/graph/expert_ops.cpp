// GraphBuilder's ops of mixtures of experts: what routes, copies and adds up rows of tokens.
#include <algorithm>

#include "workloads/graph/graph_builder.hpp"

namespace shardsim {

TensorId GraphBuilder::emit(Op op, DType dtype, Dims dims) {
  const TensorId y = activation(op.name, dtype, std::move(dims));
  op.results.insert(op.results.begin(), whole_of(y));
  block().forward.push_back(std::move(op));
  return y;
}

TensorId GraphBuilder::expand(const std::string& name, TensorId x, Dims result) {
  Op op;
  op.function = Function::expand;
  op.name = name;
  op.operands = {whole_of(x)};
  op.view = true;
  return emit(std::move(op), at(x).dtype, std::move(result));
}

TensorId GraphBuilder::over_label(Function function, const std::string& name, TensorId x,
                                  LabelId over) {
  Op op;
  op.function = function;
  op.name = name;
  op.operands = {whole_of(x)};
  op.whole = {over};
  return emit(std::move(op), at(x).dtype, at(x).dims);
}

std::pair<TensorId, TensorId> GraphBuilder::top_k(const std::string& name, TensorId x, LabelId from,
                                                  LabelId choice) {
  Dims dims = at(x).dims;
  std::replace(dims.begin(), dims.end(), Dim{from}, Dim{choice});
  const TensorId numbers = activation(name + ".numbers", DType::i64, dims);
  Op op;
  op.function = Function::top_k;
  op.name = name;
  op.operands = {whole_of(x)};
  op.results = {whole_of(numbers)};
  op.whole = {from, choice};
  return {emit(std::move(op), at(x).dtype, std::move(dims)), numbers};
}

TensorId GraphBuilder::dispatch(const std::string& name, TensorId x, TensorId numbers, Dims rows,
                                LabelId choice) {
  Op op;
  op.function = Function::dispatch;
  op.name = name;
  op.operands = {whole_of(x), whole_of(numbers)};
  op.whole = {choice};
  return emit(std::move(op), at(x).dtype, std::move(rows));
}

TensorId GraphBuilder::combine(const std::string& name, TensorId rows, TensorId numbers,
                               TensorId weights, Dims result, LabelId choice) {
  Op op;
  op.function = Function::combine;
  op.name = name;
  op.operands = {whole_of(rows), whole_of(numbers)};
  if (weights != no_tensor) op.operands.push_back(whole_of(weights));
  op.whole = {choice};
  return emit(std::move(op), at(rows).dtype, std::move(result));
}

TensorId GraphBuilder::grouped_linear(const std::string& name, TensorId x, TensorId weight,
                                      Dims result, LabelId experts, TensorId bias) {
  Op op;
  op.function = Function::grouped_matmul;
  op.name = name;
  op.operands = {whole_of(x), whole_of(weight)};
  if (bias != no_tensor) op.operands.push_back(whole_of(bias));
  op.work_fraction = 1.0 / static_cast<double>(label_size(experts));
  return emit(std::move(op), compute_dtype_, std::move(result));
}

}  // namespace shardsim
